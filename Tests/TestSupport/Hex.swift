// SPDX-License-Identifier: GPL-3.0-or-later

/// The bytes of hexadecimal digits; white space is skipped. Other characters and a lone last digit give no byte, so that
/// a comparison with them fails.
package func hex(_ digits: String) -> [UInt8] {
    let values = digits.filter { !$0.isWhitespace }.map { $0.hexDigitValue }
    return stride(from: 0, to: values.count - 1, by: 2).compactMap { index in
        guard let high = values[index], let low = values[index + 1] else { return nil }
        return UInt8(high << 4 | low)
    }
}

/// Upper-case hexadecimal digits.
package func hex(_ bytes: some Collection<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }.joined()
}
