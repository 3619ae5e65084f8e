// SPDX-License-Identifier: GPL-3.0-or-later
package import Host

/// The number that the readers of one operator share: 1 to 32 are reserved, 2 is the default, 33 and above belong to
/// partners. A Seos-style reader advertises the number in the low 24 bits of its service UUID.
package enum LockServiceCode {
    package static let range = 1...0xFF_FFFF
    package static let usual = 2

    /// Decodes the 24 bits of the service UUID.
    /// - Returns: nil for 0 and for bits that the encoding does not allow.
    package static func decode(_ bits: UInt32, _ encoding: RadioConfiguration.CodeEncoding) -> Int? {
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
