// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// The key with which the values of a store are sealed, and where it was found.
struct StoreKey: ~Copyable {
    let key: Secret
    let path: String
    let source: StoreKeySource

    /// The number of bytes of a key.
    static let count = 32

    /// - Throws: `.wrongKey` for a key of another length.
    init(_ key: consuming Secret, _ path: String, _ source: StoreKeySource) throws(Failure) {
        guard key.count == Self.count else { throw .storeWrongKey(path) }
        self.key = key
        self.path = path
        self.source = source
    }
}

/// Where the key of the store is kept.
package enum StoreKeySource: String, Sendable {
    /// A credential of systemd, which can be sealed to the host or to its TPM.
    case credential
    /// A file that only the TPM of this computer can decrypt.
    case tpm
    /// A file with mode 0600 in the folder of the store.
    case file
}

/// The places of the key of a store, in the order in which they are searched.
package struct StoreKeyPlaces {
    /// A file that systemd gives to the service (`LoadCredentialEncrypted=`).
    private let credential: String?
    /// All places, for a person who looks for a key.
    var names: String { [credential, sealed, file].compactMap(\.self).joined(separator: ", ") }
    /// The key as the TPM has sealed it, after one byte with the format.
    private let sealed: String
    /// The key itself, with mode 0600.
    let file: String
    private let tpm: TPM?

    package static let credentialName = "badged-store.key"
    private static let sealedFormat: UInt8 = 1
    private static let maximumSealedCount = 1024
    private static let minimumSealedCount = 128

    /// - Parameters:
    ///   - folder: the folder of the store.
    ///   - credentials: the folder with credentials, from `$CREDENTIALS_DIRECTORY`; nil if there is none.
    ///   - tpm: the TPM; nil if none may be used.
    init(folder: String, credentials: String?, tpm: TPM?) {
        credential = credentials.map { "\($0)/\(Self.credentialName)" }
        sealed = "\(folder)/store.tpm"
        file = "\(folder)/store.key"
        self.tpm = tpm
    }

    /// Reads the key; nil if no place has one. If the TPM cannot unseal the key, this function throws and does not
    /// search the other places.
    func read() throws(Failure) -> StoreKey? {
        if let credential, let key = try PrivateFile.read(credential, limit: StoreKey.count, checksOwner: false) {
            return try StoreKey(key, credential, .credential)
        }
        if let bytes = try PrivateFile.read(sealed, limit: Self.maximumSealedCount, checksOwner: true) {
            return try StoreKey(try unseal(bytes.withBytes { Array($0) }), sealed, .tpm)
        }
        if let key = try PrivateFile.read(file, limit: StoreKey.count, checksOwner: true) {
            return try StoreKey(key, file, .file)
        }
        return nil
    }

    private func unseal(_ bytes: [UInt8]) throws(Failure) -> Secret {
        guard bytes.first == Self.sealedFormat else { throw .storeWrongKey(sealed) }
        // Shorter than any key that a TPM has sealed: it says nothing about the TPM.
        guard bytes.count >= Self.minimumSealedCount else { throw .storeKeyCut(sealed) }
        return try Self.sealing { () throws(Failure) in
            guard let tpm else { throw .tpm(.notAllowed) }
            return try tpm.unseal(Array(bytes.dropFirst()))
        }
    }

    /// Draws a key and writes it to a file: sealed if the TPM takes new keys, otherwise unencrypted.
    func create() throws(Failure) -> StoreKey {
        let key = try cryptography(Random.secret(StoreKey.count))
        guard let sealed = try seal(key) else {
            try PrivateFile.create(file, key)
            return try StoreKey(key, file, .file)
        }
        try PrivateFile.create(self.sealed, Secret([Self.sealedFormat] + sealed))
        return try StoreKey(key, self.sealed, .tpm)
    }

    /// Seals a key; nil if no TPM takes new keys.
    private func seal(_ key: borrowing Secret) throws(Failure) -> [UInt8]? {
        try Self.sealing { () throws(Failure) in
            guard let tpm, try tpm.takesNewKeys() else { return nil }
            return try tpm.seal(key)
        }
    }

    private static func sealing<Value: ~Copyable>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
        try translating({ (error: Failure) in error.sealing }, body)
    }
}
