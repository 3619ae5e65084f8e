// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Text

/// Reads the answers of a node. Anything but the expected form is `Malformed`.
package enum NodeAnswer {
    /// The maximum number of bytes of each answer.
    package static let maximumCount = 1024 * 1024

    static func json(_ bytes: [UInt8]) throws(Malformed) -> JSON {
        try Malformed.at("the answer is not JSON", JSON(bytes))
    }

    fileprivate static func text(_ json: JSON, _ name: String) throws(Malformed) -> String {
        guard let text = json[name]?.string else { throw Malformed("the answer has no string '\(name)'") }
        return text
    }

    fileprivate static func hash(_ json: JSON, _ name: String) throws(Malformed) -> [UInt8] {
        guard let bytes = Hex.decode(try text(json, name), limit: 32), bytes.count == 32 else {
            throw Malformed("'\(name)' of the answer is not a hash")
        }
        return bytes
    }
}

/// The answer to get_info.
package struct NodeInfo: Sendable, Equatable {
    package let chain: ChainID
    /// The time of the newest block.
    package let time: AntelopeTime
    /// The last block that cannot be undone.
    package let reference: BlockReference

    package init(_ bytes: [UInt8]) throws(Malformed) {
        let json = try NodeAnswer.json(bytes)
        guard let chain = ChainID(try NodeAnswer.hash(json, "chain_id")),
            let reference = BlockReference(blockID: try NodeAnswer.hash(json, "last_irreversible_block_id"))
        else { throw Malformed("the answer has no hashes") }
        self.chain = chain
        self.reference = reference
        time = try AntelopeTime(try NodeAnswer.text(json, "head_block_time"))
    }
}

/// The answer to get_account: who may act for an account.
package struct NodeAccount: Sendable, Equatable {
    package struct Permission: Sendable, Equatable {
        package let name: String
        package let threshold: Int
        package let keys: [Key]
    }

    package struct Key: Sendable, Equatable {
        package let key: KeyText
        package let weight: Int
    }

    package let permissions: [Permission]

    package init(_ bytes: [UInt8]) throws(Malformed) {
        let json = try NodeAnswer.json(bytes)
        _ = try NodeAnswer.text(json, "account_name")
        guard let items = json["permissions"]?.array, items.count <= 1024 else {
            throw Malformed("the answer has no permissions")
        }
        var permissions: [Permission] = []
        for item in items {
            guard let authority = item["required_auth"], let threshold = authority["threshold"]?.int,
                let entries = authority["keys"]?.array, entries.count <= 1024
            else { throw Malformed("a permission of the answer has no keys") }
            var keys: [Key] = []
            for entry in entries {
                guard let text = entry["key"]?.string, let weight = entry["weight"]?.int else {
                    throw Malformed("a key of the answer has no weight")
                }
                // A chain may write keys with a prefix of its own. No card has such a key.
                guard let key = try? KeyText(text, .publicKey) else { continue }
                keys.append(Key(key: key, weight: weight))
            }
            permissions.append(
                Permission(name: try NodeAnswer.text(item, "perm_name"), threshold: threshold, keys: keys)
            )
        }
        self.permissions = permissions
    }

    /// What a key can do with a permission.
    package enum Authority: Sendable, Equatable {
        /// The key alone is enough.
        case full
        /// The permission has the key, and needs further ones.
        case partial
        case missing
    }

    /// What one key can do with a permission at most.
    package func authority(for permission: AccountName) -> Authority {
        guard let found = permissions.first(where: { $0.name == permission.description }), !found.keys.isEmpty else {
            return .missing
        }
        return found.keys.contains { $0.weight >= found.threshold } ? .full : .partial
    }

    package func authority(of key: KeyText, for permission: AccountName) -> Authority {
        guard let found = permissions.first(where: { $0.name == permission.description }),
            let entry = found.keys.first(where: { $0.key == key })
        else { return .missing }
        return entry.weight >= found.threshold ? .full : .partial
    }
}

extension NodeAnswer {
    /// Reads the answer to get_raw_abi: the packed ABI, which is compared with its hash. An account without a contract
    /// has no bytes.
    package static func rawABI(_ bytes: [UInt8]) throws(Malformed) -> [UInt8] {
        let json = try json(bytes)
        guard let packed = Base64.standard.decode(ignoringPadding: try text(json, "abi")) else {
            throw Malformed("the ABI is not base 64")
        }
        if !packed.isEmpty, let expected = json["abi_hash"], expected != .null {
            let sum = try? DigestAlgorithm.sha256.hash(packed)
            guard try sum == hash(json, "abi_hash") else { throw Malformed("the ABI does not match its hash") }
        }
        return packed
    }

    /// Reads the answer to get_abi: the ABI. An account without a contract has null.
    package static func abi(_ bytes: [UInt8]) throws(Malformed) -> JSON { try json(bytes)["abi"] ?? .null }
}

/// The answer to get_currency_stats: the tokens of a contract by their names.
package struct CurrencyStats: Sendable, Equatable {
    /// nil if the contract has no such token.
    package let symbol: TokenSymbol?

    package init(_ bytes: [UInt8], of code: SymbolCode) throws(Malformed) {
        let json = try NodeAnswer.json(bytes)
        guard json.members != nil else { throw Malformed("the answer is not an object") }
        guard let token = json[code.description] else {
            symbol = nil
            return
        }
        let supply = try Asset(try NodeAnswer.text(token, "supply"))
        guard supply.symbol.code == code else { throw Malformed("the answer is about another token") }
        symbol = supply.symbol
    }
}

/// The answer to get_currency_balance.
package struct CurrencyBalance: Sendable, Equatable {
    /// nil if the account has none.
    package let balance: Asset?

    package init(_ bytes: [UInt8], of code: SymbolCode) throws(Malformed) {
        guard let items = try NodeAnswer.json(bytes).array, items.count <= 1024 else {
            throw Malformed("the answer is not a list of balances")
        }
        var found: Asset?
        for item in items {
            guard let text = item.string else { throw Malformed("a balance of the answer is not a string") }
            let asset = try Asset(text)
            if asset.symbol.code == code { found = asset }
        }
        balance = found
    }
}

/// An error that a node reports.
package struct NodeRefusal: Sendable, Equatable {
    /// The HTTP status.
    package let status: Int
    /// The code of the exception, such as 3050003; nil if there is none.
    package let code: Int?
    /// What happened, in the words of the node.
    package let text: String

    /// The code of expired_tx_exception.
    private static let expired = 3_040_005
    /// The code of tx_duplicate, with HTTP status 409.
    private static let duplicate = 3_040_008
    /// The code of eosio_assert_message_exception.
    private static let assertion = 3_050_003

    package init(status: Int, code: Int?, text: String) { (self.status, self.code, self.text) = (status, code, text) }

    /// Reads an answer such as `{"code":500,"message":"...","error":{"code":3050003,"what":"...","details":[...]}}`.
    package init(status: Int, _ bytes: [UInt8]) throws(Malformed) {
        let json = try NodeAnswer.json(bytes)
        guard let message = json["message"]?.string else { throw Malformed("the answer has no message") }
        let error = json["error"]
        let details = (error?["details"]?.array ?? []).prefix(8).compactMap { $0["message"]?.string }
        let words = [details.first, error?["what"]?.string, message].compactMap { $0 }.first { !$0.isEmpty }
        self.init(
            status: status,
            code: error?["code"]?.int,
            text: String(String.UnicodeScalarView((words ?? "").unicodeScalars.prefix(512)))
        )
    }

    package var isExpired: Bool { code == Self.expired }
    /// Whether the node had the transaction before, so that it may have an effect.
    package var isDuplicate: Bool { code == Self.duplicate }
    package var isOverdrawn: Bool { code == Self.assertion && text.includes("overdrawn balance") }
}

/// The answer to push_transaction.
package enum PushAnswer: Sendable, Equatable {
    case executed
    /// The transaction is in a block, but has failed.
    case failed(String)

    package init(_ bytes: [UInt8], id: [UInt8]) throws(Malformed) {
        let json = try NodeAnswer.json(bytes)
        guard try NodeAnswer.hash(json, "transaction_id") == id else {
            throw Malformed("the answer is about another transaction")
        }
        let status = json["processed"]?["receipt"]?["status"]?.string ?? "executed"
        self = status == "executed" ? .executed : .failed("the chain reports \(status.quoted(longest: 64))")
    }
}
