// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Text

/// A pairing of this computer with a 3.x card. The card has five slots.
package struct KeycardPairing: ~Copyable, Sendable {
    package let slot: UInt8
    /// 32 bytes.
    package let key: Secret

    package init(slot: UInt8, key: consuming Secret) {
        self.slot = slot
        self.key = key
    }

    /// Reads `encoded`; nil for another length.
    package init?(encoded: borrowing Secret) {
        guard let slot = encoded.withBytes({ $0.first }),
            let key = encoded.part(1..<1 + KeycardParameters.secretCount), encoded.count == 1 + key.count
        else { return nil }
        self.init(slot: slot, key: key)
    }

    /// The slot followed by the key, for the store.
    package var encoded: Secret { Secret([slot]).appending(key) }
}

/// The secret that a terminal must know to pair with a 3.x card.
package enum KeycardPairingSecret {
    /// The secret that is derived from the usual password. The password is public, so this value is not confidential.
    package static let standard = Result<[UInt8], KeycardError> { () throws(KeycardError) in
        try derive(Secret(KeycardParameters.defaultPairingPassword.utf8)).withBytes { Array($0) }
    }

    /// Makes the secret of 32 bytes from a password: ASCII, or text in the form NFKD.
    package static func derive(_ password: borrowing Secret) throws(KeycardError) -> Secret {
        try crypto(
            DigestAlgorithm.sha256.pbkdf2(
                password,
                salt: Secret(KeycardParameters.pairingSalt.utf8),
                iterations: KeycardParameters.pairingIterations,
                count: KeycardParameters.secretCount
            )
        )
    }
}
