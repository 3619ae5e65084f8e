// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Secrets
import Store
import TPM
import Text

/// The keys of a user.
extension Vault {
    /// Returns the keys of a user, sorted by id.
    package func keys(of uid: UInt32) async throws(VaultError) -> [KeyRecord] {
        let time = now()
        return try await transaction { values throws(StoreError) in try Self.all(values, uid, time) }
    }

    /// Reads all keys of a user, and removes those that were not saved in time.
    static func all(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32,
        _ time: Int
    ) throws(StoreError) -> Result<[KeyRecord], VaultError> {
        guard try bytes(values, "\(uid)", endpoints) != nil else { return .failure(.notSetUp) }
        var found: [KeyRecord] = []
        for name in try values.names(in: keys, prefix: prefix(uid)) {
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

    static func key(
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

    static func isID(_ text: String) -> Bool {
        text.utf8.count == 32
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    package func key(_ id: String, of uid: UInt32) async throws(VaultError) -> KeyRecord {
        let time = now()
        return try await transaction { values throws(StoreError) in try Self.key(values, uid, id, time) }
    }

    /// Returns where the private part of a new key pair is kept. If the TPM seals the store, new keys need the TPM.
    /// - Throws: `.tpm` if keys must be in a TPM and none can be used.
    package func protectionOfNewKeys() async throws(VaultError) -> KeyRecord.Protection {
        let isSealed = try await keySource() == .tpm
        do throws(TPMError) {
            return try tpm?.takesNewKeys(isExpected: isSealed) == true ? .tpm : .software
        } catch {
            throw .tpm(error)
        }
    }

    /// Makes a key pair, in the TPM if it takes new keys. `prepare` completes the record before it is stored.
    package func makeKey(
        of uid: UInt32,
        origin: KeyRecord.Origin,
        prepare: @Sendable (inout KeyRecord) -> Void
    ) async throws(VaultError) -> KeyRecord {
        let pair =
            if let tpm, try await protectionOfNewKeys() == .tpm { try await KeyPair.make(tpm) } else {
                try KeyPair.software()
            }
        var record = KeyRecord(
            id: try Self.makeID(),
            kind: .pkoc(publicKey: pair.publicKey),
            origin: origin,
            protection: pair.protection
        )
        prepare(&record)
        return try await add(record, pair.secret, of: uid)
    }

    /// Stores a secret of 10 to 128 bytes for one-time codes. `counter` is the counter of the next HOTP code.
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

    static func remove(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32,
        _ id: String
    ) throws(StoreError) {
        let name = name(uid, id)
        for space in [keys, secrets, counters] { try values.remove(name, in: space) }
        for object in try values.names(in: data, prefix: name + "/") {
            try values.remove(object, in: data)
        }
    }
}
