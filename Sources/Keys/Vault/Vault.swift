// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
package import Store
package import Text

/// The keys of all users, in the store of the daemon. A change is on the disk when the call returns.
///
/// Every record belongs to the system user who made it. No call has access to records of another user.
package struct Vault: Sendable {
    private let store: StateStore
    /// The TPM for new keys; nil: badged must not use one.
    let tpm: TPM?
    /// Seconds since 1970.
    package let now: @Sendable () -> Int

    package init(_ store: StateStore, tpm: TPM? = nil, now: @escaping @Sendable () -> Int = { Int(time(nil)) }) {
        self.store = store
        self.tpm = tpm
        self.now = now
    }

    /// The maximum number of keys of one user.
    package static let maximumKeys = 32
    /// The maximum number of bytes of the data of one key, with their tags.
    package static let maximumData = 32 * 1024
    /// How long a key for a pass may stay unsaved, in seconds.
    package static let pendingTime = 24 * 3600

    static let endpoints = StoreSpace("vault endpoints")
    static let keys = StoreSpace("vault keys")
    static let secrets = StoreSpace("vault secrets")
    static let counters = StoreSpace("vault counters")
    static let data = StoreSpace("vault data")
    static let uses = StoreSpace("vault uses")

    /// The records of all users, for GET_HEALTH.
    package static let recordKinds = [
        RecordKind(endpoints, Phrase("endpoints"), remedy: "REMOVE_ENDPOINT deletes all keys of its user") { secret in
            secret.withBytes { Endpoint(Array($0)) } != nil
        },
        RecordKind(keys, Phrase("keys"), remedy: "GET_KEYS names those of a user, DELETE_KEY deletes one") { secret in
            secret.withBytes { KeyRecord(Array($0)) } != nil
        },
        RecordKind(secrets, "secrets of keys", remedy: "DELETE_KEY deletes the key"),
        RecordKind(counters, "counters of codes", remedy: "DELETE_KEY deletes the key") { $0.count == 8 },
        RecordKind(data, "data of keys", remedy: "PUT_DATA with empty data, or DELETE_KEY"),
        RecordKind(uses, "last uses of keys", remedy: "the next use of a key replaces one") { secret in
            secret.withBytes { LastAuthentication(Array($0)) } != nil
        },
    ]

    /// The prefix of the names of all records of one user.
    static func prefix(_ uid: UInt32) -> String { "\(uid)/" }
    static func name(_ uid: UInt32, _ id: String) -> String { prefix(uid) + id }

    package func keySource() async throws(Failure) -> StoreKeySource {
        try await store.required().keySource
    }

    /// Runs a transaction. A failure changes nothing, because `body` checks before it writes.
    func transaction<Value: Sendable>(
        _ body: @Sendable (borrowing StoreTransaction) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        // In one expression, Swift 6.3 with -Osize does not return to the executor of the caller.
        let store = try await store.required()
        return try await store.transaction(body)
    }

    // MARK: Pieces

    static func bytes(
        _ values: borrowing StoreTransaction,
        _ name: String,
        _ space: StoreSpace
    ) throws(Failure) -> [UInt8]? {
        guard let secret = try values.value(name, in: space)?.take() else { return nil }
        return secret.withBytes { Array($0) }
    }

    /// Reads a record; nil if there is none.
    static func record<Record>(
        _ values: borrowing StoreTransaction,
        _ name: String,
        _ space: StoreSpace,
        _ read: ([UInt8]) -> Record?
    ) throws(Failure) -> Record? {
        do throws(Failure) {
            guard let bytes = try bytes(values, name, space) else { return nil }
            if let record = read(bytes) { return record }
        } catch {
            guard error.code == .storeDamaged else { throw error }
        }
        throw .recordDamaged(name)
    }

    static func makeID() throws(Failure) -> String {
        return try cryptography(Hex.encode(try Random.bytes(16)))
    }
}

/// Why a command of the vault has failed. No text contains a secret.
extension Failure.Code {
    /// A record is damaged, or is not of this version.
    package static let recordDamaged = Self("RecordDamaged")
    /// The user has no endpoint.
    package static let notSetUp = Self("Endpoint")
    /// The user has no such key.
    package static let unknownKey = Self("KeyNotFound")
    /// The key cannot do this.
    package static let unfit = Self("KeyNotUsable")
    /// A limit is reached.
    package static let full = Self("StorageFull")
    /// A file of an issuer cannot be read.
    package static let invitationInvalid = Self("InvitationCodeInvalid")
}

extension Failure {
    package static func recordDamaged(_ name: String) -> Failure {
        Failure(
            .recordDamaged,
            "the record '\(name)' is damaged, or a later version of badged wrote it",
            advice: "install that version, restore the store from a backup, or delete the record"
        )
    }

    package static var notSetUp: Failure {
        Failure(.notSetUp, "there is no endpoint", advice: "send SETUP_ENDPOINT first")
    }

    package static var unknownKey: Failure { Failure(.unknownKey, "there is no such key") }

    package static func unfit(_ reason: Phrase) -> Failure { Failure(.unfit, reason) }

    package static func full(_ reason: Phrase) -> Failure { Failure(.full, reason) }

    static func enrolment(_ reason: Phrase) -> Failure { Failure(.invitationInvalid, reason) }

    static func enrolment(member name: String) -> Failure { .enrolment("\(name) of the enrolment file is wrong") }

    static var malformedEnrolment: Failure { .enrolment("the enrolment file is malformed") }
}
