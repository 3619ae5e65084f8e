// SPDX-License-Identifier: GPL-3.0-or-later
package import Credentials
import Crypto
import Glibc
package import Secrets
package import Store
import Text

/// The keys of all users, in the store of the daemon. A call is durable when it returns.
///
/// Every record belongs to the user of the system who has made it. No call reaches a record of another user.
package struct Vault: Sendable {
    private let store: StateStore
    /// Seconds since 1970.
    package let now: @Sendable () -> Int

    package init(_ store: StateStore, now: @escaping @Sendable () -> Int = { Int(time(nil)) }) {
        (self.store, self.now) = (store, now)
    }

    /// The most keys of one user.
    package static let maximumKeys = 32
    /// The most bytes of the data of one key, with their tags.
    package static let maximumData = 32 * 1024
    /// How long a key for a pass waits until it is saved.
    package static let pendingTime = 24 * 3600

    private static let endpoints = StoreSpace("vault endpoints")
    private static let keys = StoreSpace("vault keys")
    private static let secrets = StoreSpace("vault secrets")
    private static let counters = StoreSpace("vault counters")
    private static let data = StoreSpace("vault data")
    private static let uses = StoreSpace("vault uses")

    /// What the names of all records of one user begin with.
    private static func prefix(_ uid: UInt32) -> String { "\(uid)/" }
    private static func name(_ uid: UInt32, _ id: String) -> String { prefix(uid) + id }

    /// Where the key of the store comes from.
    package func keySource() async throws(VaultError) -> StoreKeySource {
        do throws(StoreError) {
            return try await store.required().keySource
        } catch {
            throw .store(error)
        }
    }

    /// Runs a transaction. A failure has changed nothing, because `body` checks before it writes.
    private func transaction<Value: Sendable>(
        _ body: @Sendable (borrowing StoreTransaction) throws(StoreError) -> Result<Value, VaultError>
    ) async throws(VaultError) -> Value {
        let result: Result<Value, VaultError>
        do throws(StoreError) {
            result = try await store.required().transaction(body)
        } catch {
            throw .store(error)
        }
        return try result.get()
    }

    // MARK: Endpoint

    /// The vault of one user.
    package struct Endpoint: Sendable, Equatable {
        /// The public key of the endpoint: 65 bytes.
        package let publicKey: [UInt8]
        /// When keys were compared with the issuer, in seconds since 1970; nil: never.
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

    private static func endpoint(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32
    ) throws(StoreError) -> Result<Endpoint?, VaultError> {
        guard let bytes = try bytes(values, "\(uid)", endpoints) else { return .success(nil) }
        guard let endpoint = Endpoint(bytes) else { return .failure(.damaged("endpoint of \(uid)")) }
        return .success(endpoint)
    }

    /// Makes the endpoint of a user, unless there is one.
    package func setUp(_ uid: UInt32) async throws(VaultError) -> Endpoint {
        let pair = try Self.makePair()
        return try await transaction { values throws(StoreError) in
            switch try Self.endpoint(values, uid) {
            case .failure(let error): return .failure(error)
            case .success(let endpoint?): return .success(endpoint)
            case .success(nil): break
            }
            let endpoint = Endpoint(publicKey: pair.publicKey)
            try values.set("\(uid)", in: Self.endpoints, to: SecretBox(Secret(endpoint.bytes)))
            try values.set(Self.name(uid, "endpoint"), in: Self.secrets, to: pair.scalar)
            return .success(endpoint)
        }
    }

    /// Remembers that the keys were compared with the issuer now.
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

    /// Removes everything of a user, also records that are damaged.
    package func removeAll(of uid: UInt32) async throws(VaultError) {
        try await transaction { values throws(StoreError) -> Result<Void, VaultError> in
            for space in [Self.keys, Self.secrets, Self.counters, Self.data] {
                for name in try values.names(in: space) where name.hasPrefix(Self.prefix(uid)) {
                    try values.remove(name, in: space)
                }
            }
            try values.remove("\(uid)", in: Self.uses)
            try values.remove("\(uid)", in: Self.endpoints)
            return .success(())
        }
    }

    // MARK: Keys

    /// Returns the keys of a user, sorted by id.
    package func keys(of uid: UInt32) async throws(VaultError) -> [KeyRecord] {
        let time = now()
        return try await transaction { values throws(StoreError) in try Self.all(values, uid, time) }
    }

    /// Reads all keys of a user, and forgets those that were not saved in time.
    private static func all(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32,
        _ time: Int
    ) throws(StoreError) -> Result<[KeyRecord], VaultError> {
        guard try bytes(values, "\(uid)", endpoints) != nil else { return .failure(.notSetUp) }
        var found: [KeyRecord] = []
        for name in try values.names(in: keys) where name.hasPrefix(prefix(uid)) {
            guard let bytes = try bytes(values, name, keys), let key = KeyRecord(bytes) else {
                return .failure(.damaged(name))
            }
            if let end = key.pendingUntil, end <= time {
                try remove(values, uid, key.id)
            } else {
                found.append(key)
            }
        }
        return .success(found)
    }

    private static func key(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32,
        _ id: String,
        _ time: Int
    ) throws(StoreError) -> Result<KeyRecord, VaultError> {
        guard try bytes(values, "\(uid)", endpoints) != nil else { return .failure(.notSetUp) }
        guard isID(id), let bytes = try bytes(values, name(uid, id), keys) else { return .failure(.unknownKey) }
        guard let key = KeyRecord(bytes) else { return .failure(.damaged(name(uid, id))) }
        if let end = key.pendingUntil, end <= time { return .failure(.unknownKey) }
        return .success(key)
    }

    private static func isID(_ text: String) -> Bool {
        text.utf8.count == 32
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    package func key(_ id: String, of uid: UInt32) async throws(VaultError) -> KeyRecord {
        let time = now()
        return try await transaction { values throws(StoreError) in try Self.key(values, uid, id, time) }
    }

    /// Makes a key pair. `prepare` fills in the record before it is kept.
    package func makeKey(
        of uid: UInt32,
        origin: KeyRecord.Origin,
        prepare: @Sendable (inout KeyRecord) -> Void
    ) async throws(VaultError) -> KeyRecord {
        let pair = try Self.makePair()
        var record = KeyRecord(id: try Self.makeID(), kind: .pkoc(publicKey: pair.publicKey), origin: origin)
        prepare(&record)
        return try await add(record, pair.scalar, of: uid)
    }

    /// Keeps a secret for one-time codes, of 10 to 128 bytes. `counter` is the counter of the next code of HOTP.
    package func addCodes(
        _ codes: OneTimeCodes,
        secret: SecretBox,
        counter: UInt64,
        of uid: UInt32,
        prepare: @Sendable (inout KeyRecord) -> Void
    ) async throws(VaultError) -> KeyRecord {
        var record = KeyRecord(id: try Self.makeID(), kind: .otp(codes), origin: .created)
        prepare(&record)
        return try await add(record, secret, counter: counter, of: uid)
    }

    private func add(
        _ record: KeyRecord,
        _ secret: SecretBox,
        counter: UInt64? = nil,
        of uid: UInt32
    ) async throws(VaultError) -> KeyRecord {
        let time = now()
        return try await transaction { values throws(StoreError) in
            switch try Self.all(values, uid, time) {
            case .failure(let error): return .failure(error)
            case .success(let all):
                guard all.count < Self.maximumKeys else {
                    return .failure(.full("there can be \(Self.maximumKeys) keys at most: delete one"))
                }
            }
            let name = Self.name(uid, record.id)
            try values.set(name, in: Self.secrets, to: secret)
            if let counter { try values.set(name, in: Self.counters, to: Self.box(counter)) }
            try values.set(name, in: Self.keys, to: SecretBox(Secret(record.bytes)))
            return .success(record)
        }
    }

    /// Changes the record of a key. A failure of `body` changes nothing.
    package func change(
        _ id: String,
        of uid: UInt32,
        _ body: @Sendable (inout KeyRecord) -> VaultError?
    ) async throws(VaultError) -> KeyRecord {
        let time = now()
        return try await transaction { values throws(StoreError) in
            switch try Self.key(values, uid, id, time) {
            case .failure(let error): return .failure(error)
            case .success(var key):
                if let error = body(&key) { return .failure(error) }
                try values.set(Self.name(uid, id), in: Self.keys, to: SecretBox(Secret(key.bytes)))
                return .success(key)
            }
        }
    }

    /// Activates or deactivates a key.
    package func activate(_ id: String, _ isActive: Bool, of uid: UInt32) async throws(VaultError) -> KeyRecord {
        try await change(id, of: uid) { key in
            if isActive, key.isRevoked { return .unfit("the issuer has revoked this key") }
            if isActive, key.pendingUntil != nil { return .unfit("the pass of this key is not saved yet") }
            key.isActive = isActive
            return nil
        }
    }

    /// Deletes a key with its secret and its data.
    package func delete(_ id: String, of uid: UInt32) async throws(VaultError) {
        let time = now()
        try await transaction { values throws(StoreError) -> Result<Void, VaultError> in
            if case .failure(let error) = try Self.key(values, uid, id, time) {
                // A damaged key can be deleted, too.
                guard case .damaged = error else { return .failure(error) }
            }
            try Self.remove(values, uid, id)
            return .success(())
        }
    }

    private static func remove(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32,
        _ id: String
    ) throws(StoreError) {
        let name = name(uid, id)
        for space in [keys, secrets, counters] { try values.remove(name, in: space) }
        for object in try values.names(in: data) where object.hasPrefix(name + "/") {
            try values.remove(object, in: data)
        }
    }

    // MARK: Signing

    /// Returns a key with which the endpoint or a driver signs.
    /// - Throws: `.unfit` for a key that has no key pair.
    package func signingKey(_ id: String, of uid: UInt32) async throws(VaultError) -> any CredentialKey {
        let time = now()
        return try await transaction { values throws(StoreError) in
            switch try Self.key(values, uid, id, time) {
            case .failure(let error): return .failure(error)
            case .success(let record):
                guard let publicKey = record.publicKey else { return .failure(.unfit("the key cannot sign")) }
                guard let scalar = try values.value(Self.name(uid, id), in: Self.secrets)?.take() else {
                    return .failure(.damaged(Self.name(uid, id)))
                }
                return .success(SoftwareKey(scalar, publicKey: publicKey))
            }
        }
    }

    /// A key that drivers may use, with its record.
    package struct UsableKey: Sendable {
        package let record: KeyRecord
        package let key: any CredentialKey
    }

    /// Returns the keys of a user that can open readers: active ones with a key pair.
    package func usableKeys(of uid: UInt32) async throws(VaultError) -> [UsableKey] {
        var usable: [UsableKey] = []
        for record in try await keys(of: uid) where record.isUsable && record.publicKey != nil {
            usable.append(UsableKey(record: record, key: try await signingKey(record.id, of: uid)))
        }
        return usable
    }

    /// Remembers that a key was used at a reader.
    package func used(_ id: String, isModified: Bool, of uid: UInt32) async throws(VaultError) {
        let time = now()
        try await transaction { values throws(StoreError) -> Result<Void, VaultError> in
            if case .failure(let error) = try Self.key(values, uid, id, time) { return .failure(error) }
            let last = try Self.bytes(values, "\(uid)", Self.uses).flatMap { LastAuthentication($0) }
            let use = LastAuthentication(
                key: id,
                counter: (last?.counter ?? 0) + 1,
                isModified: isModified,
                time: time
            )
            try values.set("\(uid)", in: Self.uses, to: SecretBox(Secret(use.bytes)))
            return .success(())
        }
    }

    /// Returns the last use of a key; nil if no key was used.
    package func lastAuthentication(of uid: UInt32) async throws(VaultError) -> LastAuthentication? {
        try await transaction { values throws(StoreError) in
            .success(try Self.bytes(values, "\(uid)", Self.uses).flatMap { LastAuthentication($0) })
        }
    }

    // MARK: One-time codes

    /// A one-time code, and the counter or the step of the time that made it.
    package struct Code: Sendable, Equatable {
        package let text: String
        package let codes: OneTimeCodes
        package let counter: UInt64
    }

    /// Makes a code. The counter of HOTP is increased on the disk before the code is returned.
    package func code(_ id: String, of uid: UInt32) async throws(VaultError) -> Code {
        let time = now()
        let (codes, counter, secret) = try await transaction {
            values throws(StoreError) -> Result<(OneTimeCodes, UInt64, SecretBox), VaultError> in
            let record: KeyRecord
            switch try Self.key(values, uid, id, time) {
            case .failure(let error): return .failure(error)
            case .success(let found): record = found
            }
            guard let codes = record.codes else { return .failure(.unfit("the key makes no codes")) }
            guard record.isUsable else { return .failure(.unfit("the key is not active")) }
            let name = Self.name(uid, id)
            guard let secret = try values.value(name, in: Self.secrets) else { return .failure(.damaged(name)) }
            guard codes.kind == .hotp else { return .success((codes, codes.step(at: time), secret)) }
            guard let counter = try Self.counter(values, name) else { return .failure(.damaged(name)) }
            guard counter < .max else { return .failure(.full("the counter has reached its end")) }
            try values.set(name, in: Self.counters, to: Self.box(counter + 1))
            return .success((codes, counter, secret))
        }
        guard let key = secret.take() else { throw .library("the secret is gone") }
        do throws(CryptoError) {
            return Code(text: try codes.code(key, counter: counter), codes: codes, counter: counter)
        } catch {
            throw .library("\(error)")
        }
    }

    /// Returns the counter of the next code, or the step of the time now. Changes nothing.
    package func counter(_ id: String, of uid: UInt32) async throws(VaultError) -> UInt64 {
        let time = now()
        return try await transaction { values throws(StoreError) in
            switch try Self.key(values, uid, id, time) {
            case .failure(let error): return .failure(error)
            case .success(let record):
                guard let codes = record.codes else { return .failure(.unfit("the key makes no codes")) }
                guard codes.kind == .hotp else { return .success(codes.step(at: time)) }
                let name = Self.name(uid, id)
                guard let counter = try Self.counter(values, name) else { return .failure(.damaged(name)) }
                return .success(counter)
            }
        }
    }

    private static func box(_ counter: UInt64) -> SecretBox {
        SecretBox(Secret(withUnsafeBytes(of: counter.bigEndian) { Array($0) }))
    }

    private static func counter(_ values: borrowing StoreTransaction, _ name: String) throws(StoreError) -> UInt64? {
        guard let bytes = try bytes(values, name, counters), bytes.count == 8 else { return nil }
        return bytes.reduce(0) { $0 << 8 | UInt64($1) }
    }

    // MARK: Data objects

    /// Returns an object of a key; nil if there is none.
    package func data(_ tag: DataTag, key id: String, of uid: UInt32) async throws(VaultError) -> SecretBox? {
        let time = now()
        return try await transaction { values throws(StoreError) in
            if case .failure(let error) = try Self.key(values, uid, id, time) { return .failure(error) }
            return .success(try values.value("\(Self.name(uid, id))/\(tag.hex)", in: Self.data))
        }
    }

    /// Keeps an object of a key. Without a byte the object is removed.
    package func setData(
        _ content: SecretBox,
        _ tag: DataTag,
        key id: String,
        of uid: UInt32
    ) async throws(VaultError) {
        let time = now()
        try await transaction { values throws(StoreError) -> Result<Void, VaultError> in
            if case .failure(let error) = try Self.key(values, uid, id, time) { return .failure(error) }
            guard let bytes = content.take() else { return .failure(.library("the data are gone")) }
            let own = "\(Self.name(uid, id))/\(tag.hex)"
            guard bytes.count > 0 else {
                try values.remove(own, in: Self.data)
                return .success(())
            }
            var count = bytes.count + tag.bytes.count
            for name in try values.names(in: Self.data) where name.hasPrefix(Self.name(uid, id) + "/") && name != own {
                count += try Self.count(values, name)
            }
            guard count <= Self.maximumData else {
                return .failure(.full("a key has \(Self.maximumData / 1024) KiB for data: remove some"))
            }
            try values.set(own, in: Self.data, to: SecretBox(bytes))
            return .success(())
        }
    }

    /// The bytes of all data of a user, with their tags.
    package func dataCount(of uid: UInt32) async throws(VaultError) -> Int {
        try await transaction { values throws(StoreError) in
            var count = 0
            for name in try values.names(in: Self.data) where name.hasPrefix(Self.prefix(uid)) {
                count += try Self.count(values, name)
            }
            return .success(count)
        }
    }

    private static func count(_ values: borrowing StoreTransaction, _ name: String) throws(StoreError) -> Int {
        let tag = name.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.count
        guard let object = try values.value(name, in: data)?.take() else { return 0 }
        return object.count + tag / 2
    }

    // MARK: Pieces

    private static func bytes(
        _ values: borrowing StoreTransaction,
        _ name: String,
        _ space: StoreSpace
    ) throws(StoreError) -> [UInt8]? {
        guard let secret = try values.value(name, in: space)?.take() else { return nil }
        return secret.withBytes { Array($0) }
    }

    private static func makeID() throws(VaultError) -> String {
        do throws(CryptoError) {
            return Hex.encode(try Random.bytes(16))
        } catch {
            throw .library("\(error)")
        }
    }

    private static func makePair() throws(VaultError) -> (publicKey: [UInt8], scalar: SecretBox) {
        do throws(CryptoError) {
            while true {
                let scalar = try Random.secret(32)
                // A number that is not below the order of the curve is drawn again.
                guard let key = try? ECPrivateKey(scalar, on: Curve.secp256r1.group) else { continue }
                return (key.publicKey.uncompressed, SecretBox(scalar))
            }
        } catch {
            throw .library("\(error)")
        }
    }
}

/// The BER tag of a data object: one or two bytes.
package struct DataTag: Sendable, Equatable {
    package let bytes: [UInt8]

    /// Takes a tag; nil for another form. ISO/IEC 7816-4, 5.2.2.1.
    package init?(_ bytes: [UInt8]) {
        switch bytes.count {
        case 1: guard bytes[0] != 0, bytes[0] & 0x1F != 0x1F else { return nil }
        case 2: guard bytes[0] & 0x1F == 0x1F, (0x1F...0x7F).contains(bytes[1]) else { return nil }
        default: return nil
        }
        self.bytes = bytes
    }

    package var hex: String { Hex.encode(bytes) }
}

/// A key pair whose private part is in wiped memory.
final class SoftwareKey: CredentialKey {
    let publicKey: [UInt8]
    private let scalar: Secret

    init(_ scalar: consuming Secret, publicKey: [UInt8]) {
        self.publicKey = publicKey
        self.scalar = scalar
    }

    @concurrent func sign(digest: [UInt8]) async throws -> [UInt8] {
        guard digest.count == DigestAlgorithm.sha256.count else { throw CryptoError.invalidLength }
        let key = try ECPrivateKey(scalar, on: Curve.secp256r1.group)
        // A store whose parts were mixed must not sign for another key.
        guard key.publicKey.uncompressed == publicKey else { throw CryptoError.invalidKey }
        return try ECDSA.sign(digest: digest, with: key)
    }
}
