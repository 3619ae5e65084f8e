// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The identity of the readers, their key and identifier, and the credentials that they accept.
package final class AliroSite: Sendable {
    /// The long-term key of the readers, on P-256. Cards answer only readers whose public key they know.
    let key: ECPrivateKey
    /// The names of the group of readers and of the subgroup, 16 bytes each.
    package let identifier: [UInt8]
    /// The points of the known credentials.
    package let credentials: Set<[UInt8]>
    /// Validated mode: only known credentials are accepted.
    package let isValidated: Bool
    /// Whether a card that was read before may use the fast phase.
    package let allowsFast: Bool

    /// `group` and `subgroup` have 16 bytes each; other lengths are cut or filled with zeros.
    package init(
        key: consuming ECPrivateKey,
        group: [UInt8],
        subgroup: [UInt8] = [],
        credentials: [ECPublicKey] = [],
        isValidated: Bool = false,
        allowsFast: Bool = true
    ) {
        func sixteen(_ bytes: [UInt8]) -> [UInt8] {
            Array(bytes.prefix(16)) + [UInt8](repeating: 0, count: max(0, 16 - bytes.count))
        }
        self.key = key
        identifier = sixteen(group) + sixteen(subgroup)
        self.credentials = Set(credentials.map(\.uncompressed))
        self.isValidated = isValidated
        self.allowsFast = allowsFast
    }

    /// The public key of the readers, which cards must know.
    package var publicKey: ECPublicKey { key.publicKey }

    /// Whether the site accepts a proven key as a credential.
    func accepts(_ key: ECPublicKey) -> Bool { !isValidated || credentials.contains(key.uncompressed) }
}

/// A card that was read before, and the key that it shares with the readers since then.
package final class AliroBond: Sendable {
    /// The key of the card, on P-256.
    package let key: ECPublicKey
    /// 32 bytes.
    let persistent: Secret

    package static let count = 97

    init(_ key: ECPublicKey, _ persistent: consuming Secret) {
        self.key = key
        self.persistent = persistent
    }

    /// Reads what `bytes` has written; nil for anything else.
    package init?(_ bytes: borrowing Secret) {
        guard bytes.count == Self.count, let persistent = bytes.part(65..<Self.count),
            let key = try? ECPublicKey(bytes.withBytes { Array($0.prefix(65)) }, on: .secp256r1)
        else { return nil }
        self.key = key
        self.persistent = persistent
    }

    /// The point and the shared key, for the store.
    package var bytes: Secret { Secret(key.uncompressed).appending(persistent) }
}

/// What is new for each tap: the ephemeral key and the transaction identifier.
package struct AliroTap: ~Copyable, Sendable {
    let key: ECPrivateKey
    let transaction: [UInt8]

    package init() throws(CryptoError) {
        let transaction = try Random.bytes(AliroCommand.transactionLength)
        self.init(key: try ECPrivateKey(on: try Curve.secp256r1.group), transaction: transaction)
    }

    /// For tests with vectors.
    package init(key: consuming ECPrivateKey, transaction: [UInt8]) {
        self.key = key
        self.transaction = transaction
    }
}
