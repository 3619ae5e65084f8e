// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Secrets

/// The two keys of a secure messaging session, 16, 24 or 32 bytes each. TR-03110-3 A.2.3.
package struct SessionKeys: ~Copyable, Sendable {
    package let encryption: Secret
    package let authentication: Secret

    package init(encryption: consuming Secret, authentication: consuming Secret) {
        self.encryption = encryption
        self.authentication = authentication
    }

    /// Derives both from the shared secret of a key agreement.
    package init(sharedSecret: borrowing Secret, cipher: AES) throws(CryptoError) {
        let encryption = try KeyDerivation.derive(.encryption, from: sharedSecret, for: cipher)
        let authentication = try KeyDerivation.derive(.authentication, from: sharedSecret, for: cipher)
        self.init(encryption: encryption, authentication: authentication)
    }

    /// Returns a copy.
    package borrowing func clone() -> SessionKeys {
        SessionKeys(encryption: encryption.clone(), authentication: authentication.clone())
    }
}
