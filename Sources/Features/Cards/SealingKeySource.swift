// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Secrets
package import Server

/// The key of one card, under which a feature seals its secrets.
package struct SealingKey: Sendable {
    /// 32 bytes that name the keys of the card. They are not secret.
    package let keyUID: [UInt8]
    /// 32 bytes.
    package let key: SecretBox

    package init(keyUID: [UInt8], key: SecretBox) { (self.keyUID, self.key) = (keyUID, key) }
}

/// Why there is no key. The texts say what to do, and have no secret.
package enum SealingKeyFailure: Error, Sendable, Equatable {
    case cancelled
    /// A question was not answered in time.
    case timedOut
    case failed(String)
}

/// Gives other features the key of a card: the feature of the cards that have one.
@Loop package protocol SealingKeySource: AnyObject, Sendable {
    /// Borrows a card in the dialogue of `workflow`, and asks for its PIN. At the end the reader is free.
    ///
    /// With `keyUID` the card must have these keys. If a card has other keys, the client is told so and is not asked
    /// for its PIN. Without `readerName` the card may be in any reader.
    func sealingKey(
        for workflow: Workflow,
        keyUID: [UInt8]?,
        readerName: String?
    ) async throws(SealingKeyFailure) -> SealingKey
}
