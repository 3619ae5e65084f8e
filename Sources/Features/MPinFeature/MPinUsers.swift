// SPDX-License-Identifier: GPL-3.0-or-later
import MPin
import Secrets
import Store

/// What a token is for.
enum TokenPurpose: Sendable {
    case login
    case signing
}

/// The users of M-Pin, with their tokens, in the store. A user belongs to the user of the system who has made it.
struct MPinUsers: Sendable {
    private let store: StateStore

    private static let users = StoreSpace("mpin users")
    /// 65 bytes: a point.
    private static let tokens = StoreSpace("mpin tokens")
    /// Tokens for signing documents.
    private static let signingTokens = StoreSpace("mpin signing tokens")
    /// The second share of a time permit: the day in 4 bytes, and a point.
    private static let permits = StoreSpace("mpin permits")

    /// The maximum number of users of one user of the system.
    static let maximumNumber = 64

    init(_ store: StateStore) { self.store = store }

    /// Returns all users of a user of the system, in the order of identities.
    func all(of uid: UInt32) async throws(StoreError) -> [MPinUser] {
        guard let store = try await store.opened() else { return [] }
        let prefix = MPinUser.prefix(uid)
        return try await store.transaction { values throws(StoreError) in
            var found: [MPinUser] = []
            for name in try values.names(in: Self.users) where name.hasPrefix(prefix) {
                if let user = try Self.user(name, values) { found.append(user) }
            }
            return found.sorted { ($0.identity, $0.backend.key) < ($1.identity, $1.backend.key) }
        }
    }

    func user(_ name: String) async throws(StoreError) -> MPinUser? {
        guard let store = try await store.opened() else { return nil }
        return try await store.transaction { values throws(StoreError) in try Self.user(name, values) }
    }

    private static func user(_ name: String, _ values: borrowing StoreTransaction) throws(StoreError) -> MPinUser? {
        guard let box = try values.value(name, in: users), let record = box.take() else { return nil }
        guard let user = MPinUser(record.withBytes { Array($0) }) else { throw .damaged(name) }
        return user
    }

    /// Adds a user.
    /// - Returns: false if there are too many.
    func add(_ user: MPinUser, _ name: String, uid: UInt32) async throws(StoreError) -> Bool {
        let prefix = MPinUser.prefix(uid)
        return try await store.required().transaction { values throws(StoreError) in
            let count = try values.names(in: Self.users).count { $0.hasPrefix(prefix) }
            guard count < Self.maximumNumber else { return false }
            try values.set(name, in: Self.users, to: SecretBox(Secret(user.bytes)))
            return true
        }
    }

    func change(_ user: MPinUser, _ name: String) async throws(StoreError) {
        try await store.required().set(name, in: Self.users, to: SecretBox(Secret(user.bytes)))
    }

    /// Keeps a user who is registered now, with the token.
    func keep(
        _ user: MPinUser,
        _ name: String,
        token: SecretBox,
        for purpose: TokenPurpose = .login
    ) async throws(StoreError) {
        try await store.required().transaction { values throws(StoreError) in
            try values.set(name, in: Self.users, to: SecretBox(Secret(user.bytes)))
            try values.set(name, in: Self.space(purpose), to: token)
        }
    }

    private static func space(_ purpose: TokenPurpose) -> StoreSpace { purpose == .login ? tokens : signingTokens }

    /// Keeps a user who has no token any more.
    func dropToken(_ user: MPinUser, _ name: String) async throws(StoreError) {
        try await store.required().transaction { values throws(StoreError) in
            try values.set(name, in: Self.users, to: SecretBox(Secret(user.bytes)))
            for space in [Self.tokens, Self.signingTokens, Self.permits] { try values.remove(name, in: space) }
        }
    }

    func remove(_ name: String) async throws(StoreError) {
        try await store.required().transaction { values throws(StoreError) in
            try values.remove(name, in: Self.users)
            for space in [Self.tokens, Self.signingTokens, Self.permits] { try values.remove(name, in: space) }
        }
    }

    func token(_ name: String, for purpose: TokenPurpose = .login) async throws(StoreError) -> SecretBox? {
        try await store.required().value(name, in: Self.space(purpose))
    }

    /// Returns the second share of the last time permit.
    func permit(_ name: String) async throws(StoreError) -> (day: PermitDay, second: SecretBox)? {
        guard let value = try await store.required().value(name, in: Self.permits)?.take(),
            let second = value.part(4..<value.count)
        else { return nil }
        let number = value.withBytes { $0.prefix(4).reduce(0) { $0 << 8 | UInt32($1) } }
        return (PermitDay(number), SecretBox(second))
    }

    func keep(_ day: PermitDay, _ second: SecretBox, _ name: String) async throws(StoreError) {
        guard let share = second.take() else { return }
        let value = Secret(withUnsafeBytes(of: day.number.bigEndian) { Array($0) }).appending(share)
        try await store.required().set(name, in: Self.permits, to: SecretBox(value))
    }
}
