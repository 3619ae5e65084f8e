// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import HDWallet
package import Text

/// A public key or a signature with its type: the packed form and the text.
package struct KeyText: Sendable, Hashable, CustomStringConvertible {
    package enum Kind: String, Sendable {
        case publicKey = "PUB"
        case signature = "SIG"
    }

    /// The curves in the order of their packed numbers.
    package enum NamedCurve: String, Sendable, CaseIterable {
        /// secp256k1
        case k1 = "K1"
        /// secp256r1
        case r1 = "R1"
        /// WebAuthn
        case wa = "WA"
    }

    package let kind: Kind
    package let curve: NamedCurve
    /// The packed form without the number of the curve.
    package let content: [UInt8]

    /// The form of older nodes: `EOS` instead of `PUB_K1_`.
    private static let legacyPrefix = "EOS"

    init(_ kind: Kind, _ curve: NamedCurve, _ content: [UInt8]) {
        self.kind = kind
        self.curve = curve
        self.content = content
    }

    package init(_ key: PublicKey) { self.init(.publicKey, .k1, key.compressed) }

    /// Reads a text such as `PUB_K1_...`, `SIG_K1_...` or `EOS...`.
    package init(_ text: String, _ kind: Kind) throws(Malformed) {
        let failure = Malformed(kind == .publicKey ? "this is not a public key" : "this is not a signature")
        let parts = text.split(separator: "_", maxSplits: 2, omittingEmptySubsequences: false)
        let curve: NamedCurve
        let suffix: [UInt8]
        let digits: Substring
        if parts.count == 3, parts[0] == kind.rawValue, let named = NamedCurve(rawValue: String(parts[1])) {
            curve = named
            suffix = Array(named.rawValue.utf8)
            digits = parts[2]
        } else if kind == .publicKey, text.hasPrefix(Self.legacyPrefix) {
            curve = .k1
            suffix = []
            digits = text.dropFirst(Self.legacyPrefix.count)
        } else {
            throw failure
        }
        guard let bytes = Base58.decode(digits), bytes.count > 4 else { throw failure }
        let content = Array(bytes.dropLast(4))
        guard try Self.checksum(content, suffix) == Array(bytes.suffix(4)) else {
            throw Malformed("the checksum of the key or signature is wrong")
        }
        var reader = PackReader([UInt8(NamedCurve.allCases.firstIndex(of: curve) ?? 0)] + content)
        let read = try Self.read(&reader, kind)
        guard reader.isAtEnd else { throw failure }
        self = read
    }

    /// Reads the packed form: the number of the curve and the content.
    package static func read(_ reader: inout PackReader, _ kind: Kind) throws(Malformed) -> KeyText {
        let number = try reader.number(UInt8.self)
        guard Int(number) < NamedCurve.allCases.count else { throw Malformed("the curve \(number) is unknown") }
        let curve = NamedCurve.allCases[Int(number)]
        var content = PackWriter()
        content.raw(try reader.raw(kind == .publicKey ? 33 : 65))
        if curve == .wa {
            switch kind {
            case .publicKey:
                content.raw(try reader.raw(1))
                content.counted(Array(try reader.string().utf8))
            case .signature:
                content.counted(try reader.counted())
                content.counted(Array(try reader.string().utf8))
            }
        }
        // As text: the time of Base 58 grows with the square of the length.
        guard content.bytes.count <= Base58.maximumCount * 2 / 3 else {
            throw Malformed("the key or signature is too long")
        }
        return KeyText(kind, curve, content.bytes)
    }

    package func write(to writer: inout PackWriter) {
        writer.number(UInt8(NamedCurve.allCases.firstIndex(of: curve) ?? 0))
        writer.raw(content)
    }

    package var description: String {
        let sum = (try? Self.checksum(content, Array(curve.rawValue.utf8))) ?? []
        return "\(kind.rawValue)_\(curve.rawValue)_" + Base58.encode(content + sum)
    }

    /// The text `EOS...` of a public key for K1; nil for others.
    package var legacy: String? {
        guard kind == .publicKey, curve == .k1, let sum = try? Self.checksum(content, []) else { return nil }
        return Self.legacyPrefix + Base58.encode(content + sum)
    }

    private static func checksum(_ content: [UInt8], _ suffix: [UInt8]) throws(Malformed) -> [UInt8] {
        guard let hash = try? RIPEMD160.hash(content + suffix) else { throw Malformed("RIPEMD-160 is not available") }
        return Array(hash.prefix(4))
    }
}

/// A signature for K1 with the number that recovers the key.
package struct CompactSignature: Sendable, Hashable {
    /// 65 bytes: 31 to 34, r, s.
    package let bytes: [UInt8]

    /// Takes a signature and its recovery ID, 0 to 3.
    package init(_ signature: Signature, recoveryID: UInt8) {
        bytes = [27 + 4 + (recoveryID & 3)] + signature.compact
    }

    /// Whether nodes accept the signature. The C++ function is public_key::is_canonical of fc.
    package var isCanonical: Bool {
        bytes[1] < 0x80 && !(bytes[1] == 0 && bytes[2] < 0x80)
            && bytes[33] < 0x80 && !(bytes[33] == 0 && bytes[34] < 0x80)
    }

    package var text: KeyText { KeyText(.signature, .k1, bytes) }

    /// Reads a signature for K1; nil for another curve.
    package init?(_ text: KeyText) {
        guard text.kind == .signature, text.curve == .k1, (31...34).contains(text.content[0]) else { return nil }
        bytes = text.content
    }

    /// Returns the key that signed a hash of 32 bytes; nil if there is none.
    package func recover(_ hash: [UInt8]) throws(CryptoError) -> PublicKey? {
        try Signature(compact: Array(bytes.dropFirst())).recover(id: bytes[0] - 31, for: hash)
    }
}

/// Base 58 with the alphabet of Bitcoin, for keys and signatures as text.
enum Base58 {
    private static let alphabet = Array("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".utf8)

    /// The maximum number of characters. The longest text is that of a WebAuthn signature.
    static let maximumCount = 2048

    static func encode(_ bytes: [UInt8]) -> String {
        let digits = bytes.prefix { $0 == 0 } + Radix.convert(bytes, from: 256, to: 58)
        return String(decoding: digits.map { alphabet[Int($0)] }, as: UTF8.self)
    }

    /// Returns the bytes of a text; nil for other characters and for a text that is too long.
    static func decode(_ text: Substring) -> [UInt8]? {
        guard text.utf8.count <= maximumCount else { return nil }
        let digits = text.utf8.compactMap { alphabet.firstIndex(of: $0) }.map(UInt8.init)
        guard digits.count == text.utf8.count else { return nil }
        return digits.prefix { $0 == 0 } + Radix.convert(digits, from: 58, to: 256)
    }
}
