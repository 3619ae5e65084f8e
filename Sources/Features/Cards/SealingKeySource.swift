// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Server
package import Text

/// The key of one card, under which a feature seals its secrets.
package struct SealingKey: Sendable {
    /// 32 bytes that name the keys of the card. They are not secret.
    package let keyUID: [UInt8]
    /// 32 bytes.
    package let key: SecretBox

    package init(keyUID: [UInt8], key: SecretBox) { (self.keyUID, self.key) = (keyUID, key) }
}

/// Lends the key of a card to other features. The feature of the cards that have such a key conforms.
@Loop package protocol SealingKeySource: AnyObject, Sendable {
    /// Borrows a card in the dialogue of `workflow`, and asks for its PIN. At the end the reader is free.
    ///
    /// With `keyUID` the card must have these keys. If a card has other keys, the client receives the reason and is not
    /// asked for its PIN. Without `readerName` the card may be in any reader.
    func sealingKey(
        for workflow: Workflow,
        keyUID: [UInt8]?,
        readerName: String?
    ) async throws(Failure) -> SealingKey
}
