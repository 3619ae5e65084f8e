// SPDX-License-Identifier: GPL-3.0-or-later

/// The number by which an operator's readers know each other: 1 to 32 are reserved, 2 is the usual one, 33 and above
/// belong to partners. It stands in the low 24 bits of a Seos-style reader's service UUID.
package enum LockServiceCode {
    package static let range = 1...0xFF_FFFF
    package static let usual = 2

    /// How the number stands there. That codes above 9 are written in binary is likely but not proven, so it can be
    /// chosen.
    package enum Encoding: String, Sendable, CaseIterable {
        case binary
        /// Each hexadecimal digit is a decimal one: code 33 as 000033.
        case decimal
    }

    /// The code in 24 bits; nil for 0 and for what the encoding does not allow.
    package static func decode(_ bits: UInt32, _ encoding: Encoding) -> Int? {
        var code = 0
        switch encoding {
        case .binary:
            code = Int(bits & 0xFF_FFFF)
        case .decimal:
            for shift in stride(from: 20, through: 0, by: -4) {
                let digit = Int(bits >> UInt32(shift)) & 0xF
                guard digit < 10 else { return nil }
                code = code * 10 + digit
            }
        }
        return range.contains(code) ? code : nil
    }
}
