// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// Who authorizes an action.
package struct PermissionLevel: Sendable, Hashable {
    package let actor: AccountName
    package let permission: AccountName

    package init(actor: AccountName, permission: AccountName) { (self.actor, self.permission) = (actor, permission) }
}

/// One call of a contract.
package struct AntelopeAction: Sendable, Hashable {
    package let account: AccountName
    package let name: AccountName
    package let authorization: [PermissionLevel]
    /// Packed by the ABI of the contract.
    package let data: [UInt8]

    package init(account: AccountName, name: AccountName, authorization: [PermissionLevel], data: [UInt8]) {
        self.account = account
        self.name = name
        self.authorization = authorization
        self.data = data
    }
}

/// The identifier of a chain: the hash of its initial state.
package struct ChainID: Sendable, Hashable, CustomStringConvertible {
    /// 32 bytes.
    package let bytes: [UInt8]

    package init?(_ bytes: [UInt8]) {
        guard bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    private init(known bytes: [UInt8]) { self.bytes = bytes }

    /// The main net of EOS, which is called Vaulta now.
    package static let eos = ChainID(known: [
        0xAC, 0xA3, 0x76, 0xF2, 0x06, 0xB8, 0xFC, 0x25, 0xA6, 0xED, 0x44, 0xDB, 0xDC, 0x66, 0x54, 0x7C, 0x36, 0xC6,
        0xC3, 0x3E, 0x3A, 0x11, 0x9F, 0xFB, 0xEA, 0xEF, 0x94, 0x36, 0x42, 0xF0, 0xE9, 0x06,
    ])

    package var description: String { Hex.encode(bytes) }
}

/// A recent block to which a transaction refers, so that the transaction is valid only in the history of this block
/// (TAPOS).
package struct BlockReference: Sendable, Hashable {
    package let number: UInt16
    package let prefix: UInt32

    /// - Parameter id: the 32 bytes of a block id. They begin with the number of the block.
    package init?(blockID id: [UInt8]) {
        guard id.count == 32 else { return nil }
        number = UInt16(id[2]) << 8 | UInt16(id[3])
        prefix = (8..<12).reversed().reduce(0) { $0 << 8 | UInt32(id[$1]) }
    }

    package init(number: UInt16, prefix: UInt32) { (self.number, self.prefix) = (number, prefix) }
}

/// A transaction without context-free actions and extensions.
package struct Transaction: Sendable, Hashable {
    /// Seconds since 1970.
    package let expiration: UInt32
    package let reference: BlockReference
    package let actions: [AntelopeAction]

    /// The maximum number of actions.
    package static let maximumActions = 64
    /// The maximum length in bytes.
    package static let maximumCount = 256 * 1024

    package init(expiration: UInt32, reference: BlockReference, actions: [AntelopeAction]) {
        self.expiration = expiration
        self.reference = reference
        self.actions = actions
    }

    package var packed: [UInt8] {
        var writer = PackWriter()
        writer.number(expiration)
        writer.number(reference.number)
        writer.number(reference.prefix)
        // max_net_usage_words, max_cpu_usage_ms, delay_sec: no limits of our own and no delay.
        writer.raw([0, 0, 0])
        // Context-free actions.
        writer.varuint(0)
        writer.varuint(UInt32(truncatingIfNeeded: actions.count))
        for action in actions {
            writer.number(action.account.value)
            writer.number(action.name.value)
            writer.varuint(UInt32(truncatingIfNeeded: action.authorization.count))
            for level in action.authorization {
                writer.number(level.actor.value)
                writer.number(level.permission.value)
            }
            writer.counted(action.data)
        }
        // Extensions.
        writer.varuint(0)
        return writer.bytes
    }

    /// Reads a packed transaction.
    /// - Throws: `Malformed`, also for one with limits, a delay, context-free actions or extensions.
    package init(packed bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumCount else { throw Malformed("the transaction is too large") }
        var reader = PackReader(bytes)
        expiration = try reader.number()
        reference = BlockReference(number: try reader.number(), prefix: try reader.number())
        let limits = (try reader.varuint(), try reader.number(UInt8.self), try reader.varuint())
        guard limits == (0, 0, 0) else { throw Malformed("the transaction has limits or a delay") }
        guard try reader.varuint() == 0 else { throw Malformed("the transaction has context-free actions") }
        let count = try reader.varuint()
        guard (1...UInt32(Self.maximumActions)).contains(count) else {
            throw Malformed("the transaction has no actions, or too many actions")
        }
        var actions: [AntelopeAction] = []
        for _ in 0..<count {
            let (account, name) = (AccountName(value: try reader.number()), AccountName(value: try reader.number()))
            let levels = try reader.varuint()
            guard levels <= 32 else { throw Malformed("an action has too many authorizations") }
            var authorization: [PermissionLevel] = []
            for _ in 0..<levels {
                let actor = AccountName(value: try reader.number())
                let permission = AccountName(value: try reader.number())
                authorization.append(PermissionLevel(actor: actor, permission: permission))
            }
            let data = try reader.counted()
            actions.append(AntelopeAction(account: account, name: name, authorization: authorization, data: data))
        }
        guard try reader.varuint() == 0, reader.isAtEnd else {
            throw Malformed("the transaction has extensions, or bytes after its end")
        }
        self.actions = actions
    }

    /// The id of a packed transaction on the chain: its SHA-256.
    package static func id(of packed: [UInt8]) throws(CryptoError) -> [UInt8] {
        try DigestAlgorithm.sha256.hash(packed)
    }

    /// The hash that is signed for a packed transaction without context-free data.
    package static func digest(of packed: [UInt8], on chain: ChainID) throws(CryptoError) -> [UInt8] {
        try DigestAlgorithm.sha256.hash(chain.bytes + packed + [UInt8](repeating: 0, count: 32))
    }
}
