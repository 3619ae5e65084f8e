// SPDX-License-Identifier: GPL-3.0-or-later
import Store
package import Text

/// The endpoint of a user.
extension Vault {
    /// The vault of one user.
    package struct Endpoint: Sendable, Equatable {
        /// The public key of the endpoint: 65 bytes.
        package let publicKey: [UInt8]
        /// When the keys were last compared with the issuer, in seconds since 1970; nil: never.
        package var lastSync: Int?
        /// Whether the setup has not succeeded yet. The key of the endpoint stays, because the issuer may know it.
        package var isPending = false

        package var id: String { PublicKeyText.thumbprint(publicKey) }

        init(publicKey: [UInt8], lastSync: Int? = nil) { (self.publicKey, self.lastSync) = (publicKey, lastSync) }

        init?(_ bytes: some Sequence<UInt8>) {
            guard let json = try? JSON(bytes), json["version"]?.int == 1,
                let key = json["publicKey"]?.string.flatMap({ Hex.decode($0, limit: 65) }), key.count == 65
            else { return nil }
            self.init(publicKey: key, lastSync: json["lastSync"]?.int)
            isPending = json["pending"]?.bool ?? false
        }

        var bytes: [UInt8] {
            JSONWriter.bytes { object in
                object.member("version", 1)
                object.member("publicKey", Hex.encode(publicKey))
                object.member("lastSync", lastSync)
                if isPending { object.member("pending", true) }
            }
        }
    }

    /// Returns the endpoint of a user; nil if there is none.
    package func endpoint(of uid: UInt32) async throws(Failure) -> Endpoint? {
        try await transaction { values throws(Failure) in try Self.endpoint(values, uid) }
    }

    /// Whether the setup of an endpoint has begun and not succeeded. An endpoint that cannot be read was set up.
    package func isPending(_ uid: UInt32) async throws(Failure) -> Bool {
        try await transaction { values throws(Failure) in
            try Self.readableEndpoint(values, uid)?.isPending == true
        }
    }

    static func endpoint(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32
    ) throws(Failure) -> Endpoint? {
        try record(values, "\(uid)", endpoints, { Endpoint($0) })
    }

    private static func readableEndpoint(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32
    ) throws(Failure) -> Endpoint? {
        do throws(Failure) {
            return try endpoint(values, uid)
        } catch {
            guard error.code == .recordDamaged else { throw error }
            return nil
        }
    }

    /// Makes the endpoint of a user, unless there is one. With `isPending` the setup is completed later.
    package func setUp(_ uid: UInt32, isPending: Bool = false) async throws(Failure) -> Endpoint {
        let pair = try KeyPair.software()
        return try await transaction { values throws(Failure) in
            if let endpoint = try Self.endpoint(values, uid) {
                if !isPending { try Self.completeSetUp(values, uid) }
                return endpoint
            }
            var endpoint = Endpoint(publicKey: pair.publicKey)
            endpoint.isPending = isPending
            try values.set("\(uid)", in: Self.endpoints, to: SecretBox(Secret(endpoint.bytes)))
            try values.set(Self.name(uid, "endpoint"), in: Self.secrets, to: pair.secret)
            return endpoint
        }
    }

    /// Ends the setup of an endpoint that was pending.
    static func completeSetUp(_ values: borrowing StoreTransaction, _ uid: UInt32) throws(Failure) {
        guard var endpoint = try readableEndpoint(values, uid), endpoint.isPending else { return }
        endpoint.isPending = false
        try values.set("\(uid)", in: endpoints, to: SecretBox(Secret(endpoint.bytes)))
    }

    /// Stores the current time as the time when the keys were compared with the issuer.
    package func synchronized(_ uid: UInt32) async throws(Failure) {
        let time = now()
        try await transaction { values throws(Failure) -> Void in
            guard var endpoint = try Self.endpoint(values, uid) else { throw .notSetUp }
            endpoint.lastSync = time
            try values.set("\(uid)", in: Self.endpoints, to: SecretBox(Secret(endpoint.bytes)))
        }
    }

    /// Removes all records of a user, including damaged ones.
    package func removeAll(of uid: UInt32) async throws(Failure) {
        try await transaction { values throws(Failure) -> Void in
            for space in [Self.keys, Self.secrets, Self.counters, Self.data] {
                for name in try values.names(in: space, prefix: Self.prefix(uid)) {
                    try values.remove(name, in: space)
                }
            }
            try values.remove("\(uid)", in: Self.uses)
            try values.remove("\(uid)", in: Self.endpoints)
        }
    }
}
