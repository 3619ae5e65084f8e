// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
import Concurrency
import HDWallet
import Keycard
package import Server
package import Text

extension WalletFeature: SealingKeySource {
    /// Reads the key m/43'/60'/1581'/1836083566'/0 of a Keycard, the only kind of private key that leaves the card.
    package func sealingKey(
        for workflow: Workflow,
        keyUID: [UInt8]?,
        readerName: String?
    ) async throws(Failure) -> SealingKey {
        let dialogue = KeycardDialogue(
            services,
            workflow,
            readerName: readerName,
            userID: nil,
            keyUID: keyUID.map { .sealed($0) }
        )
        do throws(Failure) {
            return try await dialogue.run { card throws(Failure) in
                // The profile may be older than this answer of the card, and the PIN is for one card alone.
                if let keyUID, card.info.keyUID != keyUID { throw .otherSeal }
                try await dialogue.openWallet(card)
                // At a registration; later the token itself shows that another wallet is open.
                if keyUID == nil { try await dialogue.checkWallet(card) }
                guard let cardUID = card.info.keyUID else { throw .noKeys }
                let key = try await dialogue.step(
                    "EXPORT KEY",
                    card,
                    SecretBox(try await card.applet.exportPrivateKey(.mpinTokens).scalar.clone())
                )
                return SealingKey(keyUID: cardUID, key: key)
            }
        } catch {
            guard error.change != nil || error.code != .cancelled && error.code != .timedOut else { throw error }
            let text: Phrase = "the card returned no key: \(error.walletCode.rawValue): \(error.walletText)"
            throw Failure(.init("SealingKey"), text)
        }
    }
}

extension Failure {
    static let otherSeal = Failure(
        .wrongWallet,
        "The card is not the one that seals the token of the user: put in that card"
    )
}
