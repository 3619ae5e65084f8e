// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Store
package import Text

/// The keys of a user.
extension Vault {
    /// The keys of a user.
    package struct KeyList: Sendable {
        /// Sorted by id.
        package let keys: [KeyRecord]
        /// The ids of the keys whose records are damaged, or of a later version.
        package let unreadable: [String]
    }

    /// Returns the keys of a user, sorted by id.
    package func keys(of uid: UInt32) async throws(Failure) -> [KeyRecord] { try await keyList(of: uid).keys }

    /// Returns the keys of a user, and the ids of those that cannot be read.
    package func keyList(of uid: UInt32) async throws(Failure) -> KeyList {
        let time = now()
        return try await transaction { values throws(Failure) in
            guard try values.has("\(uid)", in: Self.endpoints) else { throw .notSetUp }
            let records = try Self.records(values, uid)
            return KeyList(
                keys: records.good.map(\.record).filter { !$0.isForgotten(at: time) },
                unreadable: records.unreadable.map { String($0.dropFirst(Self.prefix(uid).count)) }
            )
        }
    }

    /// Reads all keys of a user, with those that were not saved in time.
    private static func records(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32
    ) throws(Failure) -> StoreTransaction.Records<KeyRecord> {
        try values.records(in: keys, prefix: prefix(uid)) { _, content in
            content.withBytes { KeyRecord(Array($0)) }
        }
    }

    static func key(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32,
        _ id: String,
        _ time: Int
    ) throws(Failure) -> KeyRecord {
        guard try values.has("\(uid)", in: endpoints) else { throw .notSetUp }
        guard isID(id) else { throw .unknownKey }
        guard let key = try record(values, name(uid, id), keys, { KeyRecord($0) }), !key.isForgotten(at: time) else {
            throw .unknownKey
        }
        return key
    }

    static func isID(_ text: String) -> Bool {
        text.utf8.count == 32
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }

    package func key(_ id: String, of uid: UInt32) async throws(Failure) -> KeyRecord {
        let time = now()
        return try await transaction { values throws(Failure) in try Self.key(values, uid, id, time) }
    }

    /// Returns where the private part of a new key pair is kept. If the TPM seals the store, new keys need the TPM.
    /// - Throws: `.tpm` if keys must be in a TPM and none can be used.
    package func protectionOfNewKeys() async throws(Failure) -> KeyRecord.Protection {
        let isSealed = try await keySource() == .tpm
        return try tpm?.takesNewKeys(isExpected: isSealed) == true ? .tpm : .software
    }

    /// Makes a key pair, in the TPM if it takes new keys. `prepare` completes the record before it is stored.
    /// - Throws: `.full` before the TPM works, if the user has no room.
    package func makeKey(
        of uid: UInt32,
        origin: KeyRecord.Origin,
        prepare: @Sendable (inout KeyRecord) -> Void
    ) async throws(Failure) -> KeyRecord {
        let time = now()
        try await transaction { values throws(Failure) -> Void in _ = try Self.place(values, uid, origin, time) }
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
    ) async throws(Failure) -> KeyRecord {
        var record = KeyRecord(id: try Self.makeID(), kind: .otp(codes), origin: .created)
        prepare(&record)
        return try await add(record, secret, counter: counter, of: uid)
    }

    /// Finds the place of a new key.
    /// - Returns: the id of the key that makes room for it; nil if there is room.
    private static func place(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32,
        _ origin: KeyRecord.Origin,
        _ time: Int
    ) throws(Failure) -> String? {
        // Where the record of the endpoint is damaged, only its removal helps, which would delete the new key.
        // A setup that is pending has the key of its invitation only.
        guard let endpoint = try Self.endpoint(values, uid), !endpoint.isPending || origin == .invitation
        else { throw .notSetUp }
        let records = try Self.records(values, uid)
        guard records.good.count + records.unreadable.count >= maximumKeys else { return nil }
        // The clock may be wrong for a while, so a key that was not saved in time stays while there is room.
        let forgotten = records.good.map(\.record).filter { $0.isForgotten(at: time) }
        guard let oldest = forgotten.min(by: { ($0.pendingUntil ?? 0) < ($1.pendingUntil ?? 0) }) else {
            throw .full("there can be \(maximumKeys) keys at most: delete one")
        }
        return oldest.id
    }

    private func add(
        _ record: KeyRecord,
        _ secret: SecretBox,
        counter: UInt64? = nil,
        of uid: UInt32
    ) async throws(Failure) -> KeyRecord {
        let time = now()
        return try await transaction { values throws(Failure) in
            if let oldest = try Self.place(values, uid, record.origin, time) { try Self.remove(values, uid, oldest) }
            let name = Self.name(uid, record.id)
            try values.set(name, in: Self.secrets, to: secret)
            if let counter { try values.set(name, in: Self.counters, to: Self.box(counter)) }
            try values.set(name, in: Self.keys, to: SecretBox(Secret(record.bytes)))
            return record
        }
    }

    /// Changes the record of a key. A failure of `body` changes nothing. `completesSetUp` also ends the setup of the
    /// endpoint.
    package func change(
        _ id: String,
        of uid: UInt32,
        completesSetUp: Bool = false,
        _ body: @Sendable (inout KeyRecord) throws(Failure) -> Void
    ) async throws(Failure) -> KeyRecord {
        let time = now()
        return try await transaction { values throws(Failure) in
            var key = try Self.key(values, uid, id, time)
            try body(&key)
            if completesSetUp { try Self.completeSetUp(values, uid) }
            try values.set(Self.name(uid, id), in: Self.keys, to: SecretBox(Secret(key.bytes)))
            return key
        }
    }

    /// Activates or deactivates a key.
    package func activate(_ id: String, _ isActive: Bool, of uid: UInt32) async throws(Failure) -> KeyRecord {
        try await change(id, of: uid) { key throws(Failure) in
            if isActive, key.isRevoked { throw .unfit("the issuer has revoked this key") }
            if isActive, key.pendingUntil != nil { throw .unfit("the pass of this key is not saved yet") }
            key.isActive = isActive
        }
    }

    /// Deletes a key with its secret and its data.
    package func delete(_ id: String, of uid: UInt32) async throws(Failure) {
        let time = now()
        try await transaction { values throws(Failure) -> Void in
            do throws(Failure) {
                _ = try Self.key(values, uid, id, time)
            } catch {
                // A damaged key can be deleted, too.
                guard error.code == .recordDamaged else { throw error }
            }
            try Self.remove(values, uid, id)
        }
    }

    static func remove(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32,
        _ id: String
    ) throws(Failure) {
        let name = name(uid, id)
        for space in [keys, secrets, counters] { try values.remove(name, in: space) }
        for object in try values.names(in: data, prefix: name + "/") {
            try values.remove(object, in: data)
        }
    }
}
