// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Secrets

/// The places of the key with which the values are sealed. The key has 32 bytes.
package struct StoreKeyPlaces: Sendable, Equatable {
    /// A file that systemd gives to the service (`LoadCredentialEncrypted=`); it comes first if it exists.
    package var credential: String?
    /// A file with mode 0600, which is made at the first use.
    package var file: String

    /// The name of the credential.
    package static let credentialName = "badged-store.key"

    /// - Parameters:
    ///   - folder: the folder of the store.
    ///   - credentials: the folder with credentials, from `$CREDENTIALS_DIRECTORY`; nil if there is none.
    package init(folder: String, credentials: String?) {
        credential = credentials.map { "\($0)/\(Self.credentialName)" }
        file = "\(folder)/store.key"
    }

    static let count = 32

    /// The kind of the place from which a key was read; nil stands for a key that was drawn now.
    func source(_ path: String?) -> StoreKeySource { path != nil && path == credential ? .credential : .file }

    /// Reads the key; nil if neither place has one.
    func read() throws(StoreError) -> (path: String, key: SecretBox)? {
        if let credential, let key = try PrivateFile.read(credential, limit: Self.count, checksOwner: false) {
            return (credential, try Self.checked(key, credential))
        }
        if let key = try PrivateFile.read(file, limit: Self.count, checksOwner: true) {
            return (file, try Self.checked(key, file))
        }
        return nil
    }

    /// Draws a key and writes it to the file.
    func create() throws(StoreError) -> (path: String, key: SecretBox) {
        let key: Secret
        do throws(CryptoError) {
            key = try Random.secret(Self.count)
        } catch {
            throw .library("no random key: \(error)")
        }
        try PrivateFile.create(file, key)
        return (file, SecretBox(key))
    }

    private static func checked(_ key: consuming Secret, _ path: String) throws(StoreError) -> SecretBox {
        guard key.count == count else { throw .wrongKey(path) }
        return SecretBox(key)
    }
}

/// The kind of place that has the key of the store.
package enum StoreKeySource: String, Sendable {
    /// A credential of systemd, which can be sealed to the host or to its TPM.
    case credential
    /// A file with mode 0600 beside the store.
    case file
}
