// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
import Concurrency
import HDWallet
import Keycard
import Secp256k1
import Secrets
package import Server

extension WalletFeature: SealingKeySource {
    /// Reads the key m/43'/60'/1581'/1836083566'/0 of a Keycard, the only kind of private key that leaves the card.
    package func sealingKey(
        for workflow: Workflow,
        keyUID: [UInt8]?,
        readerName: String?
    ) async throws(SealingKeyFailure) -> SealingKey {
        let dialogue = KeycardDialogue(
            services,
            workflow,
            readerName: readerName,
            userID: nil,
            keyUID: keyUID.map { .sealed($0) }
        )
        let result = TokenKeyResult()
        do throws(WalletFailure) {
            try await dialogue.run { card throws(KeycardStop) in
                // The profile may be older than this answer of the card, and the PIN is for one card alone.
                if let keyUID, card.info.keyUID != keyUID { throw .failed(.otherSeal) }
                try await dialogue.openWallet(card)
                guard let cardUID = card.info.keyUID else { throw .failed(.noKeys) }
                let key = try await dialogue.step("EXPORT KEY", card) { () throws(KeycardError) in
                    SecretBox(try await card.applet.exportPrivateKey(.mpinTokens).scalar.clone())
                }
                result.key = SealingKey(keyUID: cardUID, key: key)
            }
        } catch {
            switch error.code {
            case .userCanceled: throw .cancelled
            case .requestTimedOut: throw .timedOut
            default: throw .failed("\(error.code.rawValue): \(error.message)")
            }
        }
        guard let key = result.key else { throw .cancelled }
        return key
    }
}

/// The key that a dialogue has found.
@Loop private final class TokenKeyResult {
    var key: SealingKey?
}

extension WalletFailure {
    static let otherSeal = WalletFailure(
        .wrongWallet,
        "The card is not the one that seals the token of the user: put in that card"
    )
}
