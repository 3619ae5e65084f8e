// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// How the codes of a key are made.
package struct OneTimeCodes: Sendable, Equatable {
    package enum Kind: String, Sendable {
        /// From a counter. RFC 4226.
        case hotp
        /// From the time. RFC 6238.
        case totp
    }

    package var kind: Kind
    /// 6 to 8.
    package var digits: Int
    package var algorithm: DigestAlgorithm
    /// Seconds of one step of the time.
    package var period: Int

    /// Makes the settings; nil for values that no authenticator uses.
    package init?(kind: Kind, digits: Int = 6, algorithm: DigestAlgorithm = .sha1, period: Int = 30) {
        guard (6...8).contains(digits), (5...300).contains(period),
            [.sha1, .sha256, .sha512].contains(algorithm)
        else { return nil }
        self.kind = kind
        self.digits = digits
        self.algorithm = algorithm
        self.period = period
    }

    /// The lengths of secrets in bytes. RFC 4226 requires at least 16; some services use 10.
    package static let secretCounts = 10...128

    /// Computes the code of a counter or of a step of the time. RFC 4226, 5.3.
    package func code(_ secret: borrowing Secret, counter: UInt64) throws(CryptoError) -> String {
        let message = Secret(withUnsafeBytes(of: counter.bigEndian) { Array($0) })
        let hash = try algorithm.hmac(message, key: secret)
        let number = hash.withBytes { bytes -> UInt32 in
            let start = Int((bytes.last ?? 0) & 0x0F)
            guard start + 4 <= bytes.count else { return 0 }
            return bytes[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
        }
        var rest = number
        var text: [UInt8] = []
        for _ in 0..<digits {
            text.append(UInt8(ascii: "0") + UInt8(rest % 10))
            rest /= 10
        }
        return String(decoding: text.reversed(), as: UTF8.self)
    }

    /// The step of a time in seconds since 1970.
    package func step(at time: Int) -> UInt64 { UInt64(max(time, 0) / period) }
}

extension DigestAlgorithm {
    /// The name in records and commands.
    package var name: String {
        switch self {
        case .sha1: "SHA1"
        case .sha224: "SHA224"
        case .sha256: "SHA256"
        case .sha384: "SHA384"
        case .sha512: "SHA512"
        }
    }

    package init?(name: String) {
        guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }
}

package enum SecretText {
    /// Reads base 32, in which services show the secrets of one-time codes. Spaces, line ends and padding are allowed;
    /// a number of digits that no bytes have is refused. RFC 4648, 6.
    package static func base32(_ text: borrowing Secret) -> Secret? {
        var (count, digits) = (0, 0)
        var isValid = true
        let room = text.count * 5 / 8
        let bytes = Secret(count: room) { out in
            text.withBytes { text in
                var (buffer, bits) = (0, 0)
                for character in text {
                    let value: UInt8
                    switch character {
                    case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
                    case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a")
                    case UInt8(ascii: "2")...UInt8(ascii: "7"): value = character - UInt8(ascii: "2") + 26
                    case UInt8(ascii: " "), UInt8(ascii: "="), UInt8(ascii: "-"), 0x09, 0x0A, 0x0D: continue
                    default:
                        isValid = false
                        return
                    }
                    digits += 1
                    buffer = (buffer << 5 | Int(value)) & 0xFFF
                    bits += 5
                    guard bits >= 8, count < out.count else { continue }
                    bits -= 8
                    out[count] = UInt8(buffer >> bits & 0xFF)
                    count += 1
                }
            }
        }
        guard isValid, ![1, 3, 6].contains(digits % 8) else { return nil }
        return bytes.part(0..<count)
    }

    /// Reads hexadecimal digits; nil for anything else.
    package static func hex(_ text: borrowing Secret) -> Secret? {
        guard text.count.isMultiple(of: 2) else { return nil }
        var isValid = true
        let bytes = Secret(count: text.count / 2) { out in
            text.withBytes { text in
                for index in out.indices {
                    guard let high = Hex.value(text[2 * index]), let low = Hex.value(text[2 * index + 1]) else {
                        isValid = false
                        return
                    }
                    out[index] = high << 4 | low
                }
            }
        }
        guard isValid else { return nil }
        return bytes
    }
}
