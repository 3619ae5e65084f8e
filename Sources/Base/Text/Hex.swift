// SPDX-License-Identifier: Apache-2.0

/// Converts between bytes and hexadecimal digits: two digits for each byte, the high half first.
package enum Hex {
    /// Returns the lower-case digits of bytes.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0)] }, as: UTF8.self)
    }

    /// Returns the lower-case digits of a number, with leading zeros: a `UInt16` has four.
    package static func encode(_ number: some FixedWidthInteger & UnsignedInteger) -> String {
        withUnsafeBytes(of: number.bigEndian) { encode($0) }
    }

    /// Decodes digits in either case; nil for other characters, an odd number of digits, or more than `limit` bytes.
    package static func decode(_ text: some StringProtocol, limit: Int = .max) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2), digits.count / 2 <= limit else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// Returns the lower-case digit of the lower half of `value`.
    package static func digit(_ value: UInt8) -> UInt8 {
        let value = value & 0xF
        return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    /// Returns the value of a digit in either case; nil for another character.
    package static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

/// Percent-encoding of URIs. RFC 3986, 2.1.
package enum PercentEncoding {
    /// Decodes bytes in percent-encoding; nil for a percent sign without two hexadecimal digits.
    package static func decode(_ bytes: some Sequence<UInt8>) -> [UInt8]? {
        var decoded: [UInt8] = []
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(Hex.value), let low = rest.next().flatMap(Hex.value) else {
                return nil
            }
            decoded.append(high << 4 | low)
        }
        return decoded
    }
}
