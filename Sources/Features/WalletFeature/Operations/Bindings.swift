// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Crypto
import Secrets
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

        init(uid: UInt32?, appKey: String, uuid: String) throws(OperationFailure) {
            func hash(_ text: String) throws(OperationFailure) -> String {
                guard let bytes = try? DigestAlgorithm.sha256.hash(Array(text.utf8)) else {
                    throw OperationFailure(.failed, "SHA-256 is not available")
                }
                return Hex.encode(bytes)
            }
            prefix = "\(uid.map { "\($0)" } ?? "-").\(try hash(appKey))."
            name = prefix + (try hash(uuid))
        }
    }

    private let store: StateStore
    static let space = StoreSpace("mykey bindings")

    init(_ store: StateStore) { self.store = store }

    func binding(_ key: Key) async throws(OperationFailure) -> Binding? {
        try await keeping { () throws(StoreError) in
            guard let store = try await store.opened() else { return nil }
            return Self.read(try await store.value(key.name, in: Self.space))
        }
    }

    /// Returns why a card cannot be bound: the code and its words; nil if it can.
    func conflict(
        _ key: Key,
        account: AccountName,
        keyUID: [UInt8]
    ) async throws(OperationFailure) -> OperationFailure? {
        try await keeping { () throws(StoreError) in
            guard let store = try await store.opened() else { return nil }
            return try await store.transaction { values throws(StoreError) in
                try Self.conflict(values, key, account, keyUID)
            }
        }
    }

    /// Binds a card, with a new look at the table.
    func bind(_ key: Key, to binding: Binding) async throws(OperationFailure) {
        let conflict = try await keeping { () throws(StoreError) in
            let store = try await store.required()
            return try await store.transaction { values throws(StoreError) -> OperationFailure? in
                if let conflict = try Self.conflict(values, key, binding.account, binding.keyUID) { return conflict }
                try values.set(key.name, in: Self.space, to: SecretBox(Self.written(binding)))
                return nil
            }
        }
        if let conflict { throw conflict }
    }

    /// Forgets a binding and returns it; nil if there is none.
    func remove(_ key: Key) async throws(OperationFailure) -> Binding? {
        let found = try await binding(key)
        if found != nil {
            try await keeping { () throws(StoreError) in try await store.required().remove(key.name, in: Self.space) }
        }
        return found
    }

    private static func conflict(
        _ values: borrowing StoreTransaction,
        _ key: Key,
        _ account: AccountName,
        _ keyUID: [UInt8]
    ) throws(StoreError) -> OperationFailure? {
        if let own = read(try values.value(key.name, in: space)) {
            guard own.keyUID == keyUID else {
                return OperationFailure(
                    .boundToOtherCard,
                    "This UUID is bound to another card: send WALLET_UNBIND first"
                )
            }
            guard own.account != account else {
                return OperationFailure(.alreadyBound, "This UUID is already bound to this card and \(account)")
            }
            return nil
        }
        for name in try values.names(in: space) where name.hasPrefix(key.prefix) {
            guard let other = read(try values.value(name, in: space)), other.keyUID == keyUID else {
                continue
            }
            return OperationFailure(.boundToOtherUUID, "This card is bound to another user (UUID) of the dapp")
        }
        return nil
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

    private static func read(_ box: SecretBox?) -> Binding? {
        guard let box, let value = box.take(), let json = try? JSON(value.withBytes { Array($0) }),
            let account = json["account"]?.string.flatMap({ try? AccountName($0) }),
            let permission = json["permission"]?.string.flatMap({ try? AccountName($0) }),
            let keyUID = json["keyUID"]?.string.flatMap({ Hex.decode($0, limit: 32) }),
            let publicKey = json["publicKey"]?.string
        else { return nil }
        return Binding(account: account, permission: permission, keyUID: keyUID, publicKey: publicKey)
    }

    private func keeping<T>(_ body: () async throws(StoreError) -> T) async throws(OperationFailure) -> T {
        do throws(StoreError) {
            return try await body()
        } catch {
            throw OperationFailure(.failed, "badged cannot use its store: \(error.text)")
        }
    }
}
