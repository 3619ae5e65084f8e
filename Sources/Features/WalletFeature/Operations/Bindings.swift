// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Crypto
import Store
import Text

/// The accounts that the users of this computer have bound to dapps, in the store.
struct Bindings: Sendable {
    /// What `appKey` and `UUID` of a dapp stand for.
    struct Binding: Sendable, Equatable {
        var account: AccountName
        var permission: AccountName
        /// The wallet of the card: 32 bytes.
        var keyUID: [UInt8]
        var publicKey: String
    }

    /// One entry of the table. Users of the computer do not see each other's bindings.
    struct Key: Sendable, Equatable {
        /// The user and the dapp.
        let prefix: String
        let name: String

        init(uid: UInt32?, appKey: String, uuid: String) throws(Failure) {
            func hash(_ text: String) throws(Failure) -> String {
                try cryptography(Hex.encode(try DigestAlgorithm.sha256.hash(Array(text.utf8))))
            }
            prefix = "\(uid.map { "\($0)" } ?? "-").\(try hash(appKey))."
            name = prefix + (try hash(uuid))
        }
    }

    private let store: StateStore
    static let space = StoreSpace("mykey bindings")

    init(_ store: StateStore) { self.store = store }

    func binding(_ key: Key) async throws(Failure) -> Binding? {
        guard let store = try await store.opened() else { return nil }
        return try await store.transaction { values throws(Failure) in try Self.read(values, key.name) }
    }

    /// Throws why a card cannot be bound.
    func checkConflict(_ key: Key, account: AccountName, keyUID: [UInt8]) async throws(Failure) {
        guard let store = try await store.opened() else { return }
        try await store.transaction { values throws(Failure) in
            try Self.checkConflict(values, key, account, keyUID)
        }
    }

    /// Binds a card, with a new look at the table.
    func bind(_ key: Key, to binding: Binding) async throws(Failure) {
        try await store.required().transaction { values throws(Failure) in
            try Self.checkConflict(values, key, binding.account, binding.keyUID)
            try values.set(key.name, in: Self.space, to: SecretBox(Self.written(binding)))
        }
    }

    /// Forgets a binding and returns it; nil if there is none, or if it cannot be read.
    func remove(_ key: Key) async throws(Failure) -> Binding? {
        guard let store = try await store.opened() else { return nil }
        return try await store.transaction { values throws(Failure) in
            let found = try Self.all(values, prefix: key.name).good.first { $0.name == key.name }
            try values.remove(key.name, in: Self.space)
            return found?.record
        }
    }

    private static func all(
        _ values: borrowing StoreTransaction,
        prefix: String
    ) throws(Failure) -> StoreTransaction.Records<Binding> {
        try values.records(in: space, prefix: prefix) { _, content in
            content.withBytes { Binding(Array($0)) }
        }
    }

    /// The records of all users, for GET_HEALTH.
    static let recordKind = RecordKind(
        space,
        Phrase("bindings"),
        remedy: "WALLET_UNBIND deletes the one of a dapp and a UUID"
    ) { content in
        content.withBytes { Binding(Array($0)) } != nil
    }

    private static func checkConflict(
        _ values: borrowing StoreTransaction,
        _ key: Key,
        _ account: AccountName,
        _ keyUID: [UInt8]
    ) throws(Failure) {
        if let own = try read(values, key.name) {
            guard own.keyUID == keyUID else {
                throw Failure(
                    operation: .boundToOtherCard,
                    "This UUID is bound to another card: send WALLET_UNBIND first"
                )
            }
            guard own.account != account else {
                throw Failure(
                    operation: .alreadyBound,
                    "This UUID is already bound to this card and \(account): there is nothing more to do"
                )
            }
            return
        }
        guard try !all(values, prefix: key.prefix).good.contains(where: { $0.record.keyUID == keyUID }) else {
            throw Failure(
                operation: .boundToOtherUUID,
                "This card is bound to another user (UUID) of the dapp: use another card, or send WALLET_UNBIND for"
                    + " that user first"
            )
        }
    }

    // MARK: Values

    private static func written(_ binding: Binding) -> Secret {
        let json = JSON.object([
            JSON.Member("account", .string("\(binding.account)")),
            JSON.Member("permission", .string("\(binding.permission)")),
            JSON.Member("keyUID", .string(Hex.encode(binding.keyUID))),
            JSON.Member("publicKey", .string(binding.publicKey)),
        ])
        return Secret(json.bytes)
    }

    /// - Throws: if a binding cannot be read, so that it is never written over.
    private static func read(_ values: borrowing StoreTransaction, _ name: String) throws(Failure) -> Binding? {
        do throws(Failure) {
            guard let value = try values.value(name, in: space)?.take() else { return nil }
            if let binding = value.withBytes({ Binding(Array($0)) }) { return binding }
        } catch {
            guard error.code == .storeDamaged else { throw error }
        }
        throw Failure(
            operation: .failed,
            "The binding of this UUID is damaged, or a later version of badged wrote it: WALLET_UNBIND deletes it"
        )
    }
}

extension Bindings.Binding {
    /// Reads a record; nil if it is damaged.
    fileprivate init?(_ bytes: [UInt8]) {
        guard let json = try? JSON(bytes), let account = json["account"]?.string.flatMap({ try? AccountName($0) }),
            let permission = json["permission"]?.string.flatMap({ try? AccountName($0) }),
            let keyUID = json["keyUID"]?.string.flatMap({ Hex.decode($0, limit: 32) }),
            let publicKey = json["publicKey"]?.string
        else { return nil }
        self.init(account: account, permission: permission, keyUID: keyUID, publicKey: publicKey)
    }
}
