// SPDX-License-Identifier: Apache-2.0

/// Decodes the content of JSON strings that `JSONScanner` has accepted.
package enum JSONString {
    /// Writes the characters of a string (text without its quotes) as UTF-8, and returns their number of bytes.
    ///
    /// The result never has more bytes than `content`.
    package static func unescape(_ content: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer) -> Int {
        var written = 0
        var index = 0
        func unit(at start: Int) -> UInt16? {
            guard start + 4 <= content.count else { return nil }
            var value: UInt16 = 0
            for offset in 0..<4 {
                guard let digit = Hex.value(content[start + offset]) else { return nil }
                value = value << 4 | UInt16(digit)
            }
            return value
        }
        func put(_ byte: UInt8) {
            guard written < output.count else { return }
            output[written] = byte
            written += 1
        }
        while index < content.count {
            let byte = content[index]
            guard byte == UInt8(ascii: "\\"), index + 1 < content.count else {
                put(byte)
                index += 1
                continue
            }
            let kind = content[index + 1]
            index += 2
            switch kind {
            case UInt8(ascii: "b"): put(0x08)
            case UInt8(ascii: "f"): put(0x0C)
            case UInt8(ascii: "n"): put(0x0A)
            case UInt8(ascii: "r"): put(0x0D)
            case UInt8(ascii: "t"): put(0x09)
            case UInt8(ascii: "u"):
                guard let high = unit(at: index) else { continue }
                index += 4
                var scalar = Unicode.Scalar(UInt32(high))
                if high & 0xFC00 == 0xD800, index + 6 <= content.count, content[index] == UInt8(ascii: "\\"),
                    content[index + 1] == UInt8(ascii: "u"), let low = unit(at: index + 2), low & 0xFC00 == 0xDC00
                {
                    index += 6
                    scalar = Unicode.Scalar(0x10000 + (UInt32(high) & 0x3FF) << 10 + UInt32(low) & 0x3FF)
                }
                // The scanner accepts no lone surrogate.
                guard let scalar, let codes = UTF8.encode(scalar) else { continue }
                for code in codes { put(code) }
            default: put(kind)
            }
        }
        return written
    }

    /// Returns the characters of a string; `content` has no quotes.
    package static func decode(_ content: UnsafeRawBufferPointer, hasEscapes: Bool) -> String {
        guard hasEscapes else { return String(decoding: content, as: UTF8.self) }
        return String(unsafeUninitializedCapacity: content.count) { output in
            unescape(content, into: UnsafeMutableRawBufferPointer(output))
        }
    }
}
