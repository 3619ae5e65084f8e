// SPDX-License-Identifier: GPL-3.0-or-later
import MPin
import Store
import Text

/// What a token is for.
enum TokenPurpose: Sendable {
    case login
    case signing
}

/// The users of M-Pin, with their tokens, in the store. A user belongs to the user of the system who has made it.
struct StoredUsers: Sendable {
    private let store: StateStore

    private static let users = StoreSpace("mpin users")
    /// 65 bytes: a point.
    private static let tokens = StoreSpace("mpin tokens")
    /// Tokens for signing documents.
    private static let signingTokens = StoreSpace("mpin signing tokens")
    /// The second share of a time permit: the day in 4 bytes, and a point. Without a point: a login with the last share
    /// has failed.
    private static let permits = StoreSpace("mpin permits")

    /// The records of all users, for GET_HEALTH.
    static let recordKinds = [
        RecordKind(users, "users of M-Pin", remedy: "MPIN_DELETE_USER deletes one") { content in
            content.withBytes { StoredUser(Array($0)) } != nil
        },
        RecordKind(tokens, "tokens of M-Pin", remedy: "MPIN_DELETE_USER deletes the user"),
        RecordKind(signingTokens, "signing tokens of M-Pin", remedy: "MPIN_DELETE_USER deletes the user"),
        RecordKind(permits, "time permits of M-Pin", remedy: "the next login of the user replaces one"),
    ]

    /// The maximum number of users of one user of the system.
    static let maximumNumber = 64

    init(_ store: StateStore) { self.store = store }

    /// Returns all users of a user of the system, in the order of identities.
    func all(of uid: UInt32) async throws(Failure) -> [StoredUser] {
        guard let store = try await store.opened() else { return [] }
        let prefix = StoredUser.prefix(uid)
        return try await store.transaction { values throws(Failure) in
            // A record that cannot be read does not hide the others; GET_HEALTH names it.
            let records = try values.records(in: Self.users, prefix: prefix) { _, content in
                content.withBytes { StoredUser(Array($0)) }
            }
            return records.good.map(\.record).sorted { ($0.identity, $0.backend.key) < ($1.identity, $1.backend.key) }
        }
    }

    func user(_ name: String) async throws(Failure) -> StoredUser? {
        guard let store = try await store.opened() else { return nil }
        return try await store.transaction { values throws(Failure) in try Self.user(name, values) }
    }

    private static func user(_ name: String, _ values: borrowing StoreTransaction) throws(Failure) -> StoredUser? {
        guard let box = try values.value(name, in: users), let record = box.take() else { return nil }
        guard let user = StoredUser(record.withBytes { Array($0) }) else { throw .storeDamaged(name) }
        return user
    }

    /// Whether there is a user, whose record may be damaged.
    func has(_ name: String) async throws(Failure) -> Bool {
        guard let store = try await store.opened() else { return false }
        return try await store.transaction { values throws(Failure) in try values.has(name, in: Self.users) }
    }

    /// Adds a user.
    /// - Throws: if there is this user, or if there are too many.
    func add(_ user: StoredUser, _ name: String, uid: UInt32) async throws(Failure) {
        let prefix = StoredUser.prefix(uid)
        try await store.required().transaction { values throws(Failure) in
            guard try Self.user(name, values) == nil else {
                throw Failure(.flowError, "the user exists already at this backend")
            }
            guard try values.names(in: Self.users).count(where: { $0.hasPrefix(prefix) }) < Self.maximumNumber else {
                throw Failure(
                    .storageError,
                    "there can be \(Self.maximumNumber) users at most",
                    advice: "delete one"
                )
            }
            try values.set(name, in: Self.users, to: SecretBox(Secret(user.bytes)))
        }
    }

    func change(_ user: StoredUser, _ name: String) async throws(Failure) {
        try await store.required().set(name, in: Self.users, to: SecretBox(Secret(user.bytes)))
    }

    /// Keeps a user who is registered now, with the token.
    func keep(
        _ user: StoredUser,
        _ name: String,
        token: SecretBox,
        for purpose: TokenPurpose = .login
    ) async throws(Failure) {
        try await store.required().transaction { values throws(Failure) in
            try values.set(name, in: Self.users, to: SecretBox(Secret(user.bytes)))
            try values.set(name, in: Self.space(purpose), to: token)
        }
    }

    private static func space(_ purpose: TokenPurpose) -> StoreSpace { purpose == .login ? tokens : signingTokens }

    /// Keeps a user who has no token any more.
    func dropToken(_ user: StoredUser, _ name: String) async throws(Failure) {
        try await store.required().transaction { values throws(Failure) in
            try values.set(name, in: Self.users, to: SecretBox(Secret(user.bytes)))
            for space in [Self.tokens, Self.signingTokens, Self.permits] { try values.remove(name, in: space) }
        }
    }

    func remove(_ name: String) async throws(Failure) {
        try await store.required().transaction { values throws(Failure) in
            try values.remove(name, in: Self.users)
            for space in [Self.tokens, Self.signingTokens, Self.permits] { try values.remove(name, in: space) }
        }
    }

    func token(_ name: String, for purpose: TokenPurpose = .login) async throws(Failure) -> SecretBox? {
        try await store.required().value(name, in: Self.space(purpose))
    }

    /// Returns what is kept of the last time permit. In place of a damaged one the trust authority is asked.
    func permit(_ name: String) async throws(Failure) -> CachedPermit {
        let store = try await store.required()
        let box: SecretBox?
        do throws(Failure) {
            box = try await store.value(name, in: Self.permits)
        } catch {
            guard error.code == .storeDamaged else { throw error }
            return .doubtful
        }
        guard let value = box?.take(), let day = value.part(0..<4),
            let second = value.part(4..<max(4, value.withBytes { $0.count }))
        else { return .none }
        guard second.withBytes({ !$0.isEmpty }) else { return .doubtful }
        return .share(PermitDay(day.withBytes { $0.reduce(0) { $0 << 8 | UInt32($1) } }), SecretBox(second))
    }

    /// Keeps no share of a time permit, because a login with the last one has failed.
    func doubtPermit(_ name: String) async throws(Failure) {
        try await store.required().set(name, in: Self.permits, to: SecretBox(Secret([UInt8](repeating: 0, count: 4))))
    }

    func keep(_ day: PermitDay, _ second: SecretBox, _ name: String) async throws(Failure) {
        guard let share = second.take() else { return }
        let value = Secret(withUnsafeBytes(of: day.number.bigEndian) { Array($0) }).appending(share)
        try await store.required().set(name, in: Self.permits, to: SecretBox(value))
    }
}
