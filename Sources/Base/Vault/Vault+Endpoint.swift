// SPDX-License-Identifier: GPL-3.0-or-later
import Secrets
import Store
import Text

/// The endpoint of a user.
extension Vault {
    /// The vault of one user.
    package struct Endpoint: Sendable, Equatable {
        /// The public key of the endpoint: 65 bytes.
        package let publicKey: [UInt8]
        /// When the keys were last compared with the issuer, in seconds since 1970; nil: never.
        package var lastSync: Int?

        /// The thumbprint of the key.
        package var id: String { PublicKeyText.thumbprint(publicKey) }

        init(publicKey: [UInt8], lastSync: Int? = nil) { (self.publicKey, self.lastSync) = (publicKey, lastSync) }

        init?(_ bytes: some Sequence<UInt8>) {
            guard let json = try? JSON(bytes), json["version"]?.int == 1,
                let key = json["publicKey"]?.string.flatMap({ Hex.decode($0, limit: 65) }), key.count == 65
            else { return nil }
            self.init(publicKey: key, lastSync: json["lastSync"]?.int)
        }

        var bytes: [UInt8] {
            var writer = JSONWriter()
            writer.object { object in
                object.member("version", 1)
                object.member("publicKey", Hex.encode(publicKey))
                object.member("lastSync", lastSync)
            }
            return writer.bytes
        }
    }

    /// Returns the endpoint of a user; nil if there is none.
    package func endpoint(of uid: UInt32) async throws(VaultError) -> Endpoint? {
        try await transaction { values throws(StoreError) in try Self.endpoint(values, uid) }
    }

    static func endpoint(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32
    ) throws(StoreError) -> Result<Endpoint?, VaultError> {
        guard let bytes = try bytes(values, "\(uid)", endpoints) else { return .success(nil) }
        guard let endpoint = Endpoint(bytes) else { return .failure(.damaged("endpoint of \(uid)")) }
        return .success(endpoint)
    }

    /// Makes the endpoint of a user, unless there is one.
    package func setUp(_ uid: UInt32) async throws(VaultError) -> Endpoint {
        let pair = try KeyPair.software()
        return try await transaction { values throws(StoreError) in
            switch try Self.endpoint(values, uid) {
            case .failure(let error): return .failure(error)
            case .success(let endpoint?): return .success(endpoint)
            case .success(nil): break
            }
            let endpoint = Endpoint(publicKey: pair.publicKey)
            try values.set("\(uid)", in: Self.endpoints, to: SecretBox(Secret(endpoint.bytes)))
            try values.set(Self.name(uid, "endpoint"), in: Self.secrets, to: pair.secret)
            return .success(endpoint)
        }
    }

    /// Stores the current time as the time when the keys were compared with the issuer.
    package func synchronized(_ uid: UInt32) async throws(VaultError) {
        let time = now()
        try await transaction { values throws(StoreError) -> Result<Void, VaultError> in
            switch try Self.endpoint(values, uid) {
            case .failure(let error): return .failure(error)
            case .success(nil): return .failure(.notSetUp)
            case .success(var endpoint?):
                endpoint.lastSync = time
                try values.set("\(uid)", in: Self.endpoints, to: SecretBox(Secret(endpoint.bytes)))
                return .success(())
            }
        }
    }

    /// Removes all records of a user, including damaged ones.
    package func removeAll(of uid: UInt32) async throws(VaultError) {
        try await transaction { values throws(StoreError) -> Result<Void, VaultError> in
            for space in [Self.keys, Self.secrets, Self.counters, Self.data] {
                for name in try values.names(in: space, prefix: Self.prefix(uid)) {
                    try values.remove(name, in: space)
                }
            }
            try values.remove("\(uid)", in: Self.uses)
            try values.remove("\(uid)", in: Self.endpoints)
            return .success(())
        }
    }
}
