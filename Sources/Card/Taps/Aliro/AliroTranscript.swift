// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import ISO7816
package import Text

/// What a reader sends in AUTH0.
package struct AliroOpening: Sendable, Equatable {
    /// Two bytes.
    package let version: [UInt8]
    /// The ephemeral key of the reader.
    package let ephemeral: ECPublicKey
    /// 16 random bytes.
    package let transaction: [UInt8]
    /// Group and subgroup: 32 bytes.
    package let readerIdentifier: [UInt8]
    /// The values of the objects 41 (bit 0: the fast phase is wanted) and 42 (when the holder must confirm).
    package let parameters: [UInt8]

    /// The setting of the device decides whether its holder must confirm.
    package static let deviceSetting: UInt8 = 0x01

    package init(
        version: [UInt8],
        ephemeral: ECPublicKey,
        transaction: [UInt8],
        readerIdentifier: [UInt8],
        wantsFast: Bool
    ) {
        self.version = version
        self.ephemeral = ephemeral
        self.transaction = transaction
        self.readerIdentifier = readerIdentifier
        parameters = [wantsFast ? 0x01 : 0x00, Self.deviceSetting]
    }

    /// Reads the data of AUTH0 as a card does; nil if a part is missing or has a wrong length.
    package init?(data: [UInt8]) {
        guard let objects = try? BERTLV.sequence(data) else { return nil }
        func value(_ tag: UInt32, _ count: Int) -> [UInt8]? {
            let found = objects.filter { $0.tag == tag }
            return found.count == 1 && found[0].value.count == count ? found[0].value : nil
        }
        guard let fast = value(AliroTag.parameters, 1), let policy = value(AliroTag.policy, 1),
            let version = value(AliroTag.versions, 2), let point = value(AliroTag.readerEphemeral, 65),
            let transaction = value(AliroTag.transaction, AliroCommand.transactionLength),
            let identifier = value(AliroTag.readerIdentifier, AliroCommand.readerIdentifierLength),
            let ephemeral = try? ECPublicKey(point, on: .secp256r1)
        else { return nil }
        self.version = version
        self.ephemeral = ephemeral
        self.transaction = transaction
        readerIdentifier = identifier
        parameters = fast + policy
    }

    package var wantsFast: Bool { parameters[0] & 1 == 1 }
}

/// The data that both sides of a tap share after AUTH0, and the values that they derive from the data. All keys and
/// signatures are bound to these data.
package struct AliroTranscript: Sendable, Equatable {
    package let opening: AliroOpening
    /// The long-term key of the reader.
    package let readerKey: ECPublicKey
    /// The object A5 of the answer to SELECT, as sent.
    package let proprietary: [UInt8]
    package let cardEphemeral: ECPublicKey
    /// The objects B1 and B2 of AUTH0, as sent.
    package let vendor: [UInt8]

    package init(
        _ opening: AliroOpening,
        readerKey: ECPublicKey,
        proprietary: [UInt8],
        cardEphemeral: ECPublicKey,
        vendor: [UInt8] = []
    ) {
        self.opening = opening
        self.readerKey = readerKey
        self.proprietary = proprietary
        self.cardEphemeral = cardEphemeral
        self.vendor = vendor
    }

    /// Who signs, with the value of the object 93.
    package enum Signer: Sendable {
        case reader
        case card

        var usage: [UInt8] {
            switch self {
            case .reader: [0x41, 0x5D, 0x95, 0x69]
            case .card: [0x4E, 0x88, 0x7B, 0x4C]
            }
        }
    }

    /// The bytes that a side signs with ECDSA and SHA-256.
    package func signed(by signer: Signer) -> [UInt8] {
        [
            BERTLV(AliroTag.readerIdentifier, opening.readerIdentifier),
            BERTLV(AliroTag.cardEphemeral, cardEphemeral.compressed),
            BERTLV(AliroTag.readerEphemeral, opening.ephemeral.compressed),
            BERTLV(AliroTag.transaction, opening.transaction), BERTLV(AliroTag.usage, signer.usage),
        ].flatMap(\.encoded)
    }

    // MARK: Keys

    /// Computes the shared secret of both ephemeral keys: X9.63 KDF with SHA-256 over the x coordinate of the shared
    /// point.
    package func agree(_ own: borrowing ECPrivateKey, with peer: ECPublicKey) throws(CryptoError) -> Secret {
        try DigestAlgorithm.sha256.hash(try own.sharedSecret(with: peer), suffix: [0, 0, 0, 1] + opening.transaction)
    }

    /// The channel of the standard phase.
    package func standardChannel(_ agreed: borrowing Secret) throws(CryptoError) -> AliroChannel {
        let keys = try derive(agreed, "Volatile****", nil, 64)
        return try AliroChannel(keys, from: 0)
    }

    /// The key that a card and a reader keep for the fast phase of later taps, 32 bytes.
    package func persistentKey(
        _ agreed: borrowing Secret,
        credential: ECPublicKey
    ) throws(CryptoError) -> Secret {
        try derive(agreed, "Persistent**", credential, 32)
    }

    /// The key of the cryptogram in the fast phase.
    package func cryptogramKey(
        _ persistent: borrowing Secret,
        credential: ECPublicKey
    ) throws(CryptoError) -> Secret {
        try derive(persistent, "VolatileFast", credential, 32)
    }

    /// The channel of the fast phase.
    package func fastChannel(
        _ persistent: borrowing Secret,
        credential: ECPublicKey
    ) throws(CryptoError) -> AliroChannel {
        // The first 32 bytes are the key of the cryptogram.
        try AliroChannel(try derive(persistent, "VolatileFast", credential, 96), from: 32)
    }

    private func derive(
        _ secret: borrowing Secret,
        _ word: String,
        _ credential: ECPublicKey?,
        _ count: Int
    ) throws(CryptoError) -> Secret {
        let interface: [UInt8] = [0x5E]
        let ids = opening.readerIdentifier + interface + BERTLV(AliroTag.versions, opening.version).encoded
        let tap = opening.ephemeral.compressed + opening.transaction + opening.parameters + proprietary
        let salt = readerKey.compressed + Array(word.utf8) + ids + tap + (credential?.compressed ?? [])
        return try DigestAlgorithm.sha256.hkdf(
            secret,
            salt: salt,
            info: cardEphemeral.compressed + vendor,
            count: count
        )
    }
}

/// The cryptogram of the fast phase: a card proves that it has the key of an earlier tap.
package enum AliroCryptogram {
    private static let nonce = [UInt8](repeating: 0, count: 12)

    package static func seal(_ plain: borrowing Secret, key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        try AuthenticatedAES.gcm.seal(plain, key: key, nonce: nonce)
    }

    /// Whether the cryptogram was made with this key, and has its form.
    static func proves(_ cryptogram: [UInt8], key: borrowing Secret) throws(CryptoError) -> Bool {
        guard let plain = try AuthenticatedAES.gcm.open(cryptogram, key: key, nonce: nonce) else { return false }
        return AliroProof.isCryptogram(plain)
    }
}

/// The encryption of the messages after the key agreement: AES-256-GCM with a key and a counter for each direction.
package final class AliroChannel {
    package enum Side: UInt8, Sendable {
        case reader = 0
        case card = 1
    }

    private let readerKey: Secret
    private let cardKey: Secret
    /// The number of the next message of each side.
    private var next: (reader: UInt32, card: UInt32) = (1, 1)

    /// Takes the key of the reader at `offset`, and the key of the card after it; 32 bytes each.
    init(_ keys: borrowing Secret, from offset: Int) throws(CryptoError) {
        guard let reader = keys.part(offset..<offset + 32), let card = keys.part(offset + 32..<offset + 64) else {
            throw .invalidLength
        }
        readerKey = reader
        cardKey = card
    }

    /// Encrypts the next message of a side, of at least one byte. A tag of 16 bytes follows the ciphertext.
    /// - Throws: `CryptoError.invalidLength` when the counter is used up.
    package func seal(_ plain: borrowing Secret, from side: Side) throws(CryptoError) -> [UInt8] {
        let nonce = try nonce(side)
        return switch side {
        case .reader: try AuthenticatedAES.gcm.seal(plain, key: readerKey, nonce: nonce)
        case .card: try AuthenticatedAES.gcm.seal(plain, key: cardKey, nonce: nonce)
        }
    }

    /// Decrypts the next message of a side; nil if the tag is wrong.
    package func open(_ sealed: [UInt8], from side: Side) throws(CryptoError) -> Secret? {
        let nonce = try nonce(side)
        return switch side {
        case .reader: try AuthenticatedAES.gcm.open(sealed, key: readerKey, nonce: nonce)
        case .card: try AuthenticatedAES.gcm.open(sealed, key: cardKey, nonce: nonce)
        }
    }

    /// Seven zero bytes, the side, and the counter.
    private func nonce(_ side: Side) throws(CryptoError) -> [UInt8] {
        let counter = side == .reader ? next.reader : next.card
        guard counter < .max else { throw .invalidLength }
        if side == .reader { next.reader += 1 } else { next.card += 1 }
        return [0, 0, 0, 0, 0, 0, 0, side.rawValue] + withUnsafeBytes(of: counter.bigEndian, Array.init)
    }
}
