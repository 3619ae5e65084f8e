// SPDX-License-Identifier: Apache-2.0

/// Writes numbers without an exponent.
enum DecimalText {
    /// The shortest decimal digits that name the number; empty for a number that has none, such as infinity.
    static func of(_ number: Double) -> String {
        guard number.isFinite else { return "" }
        let text = number.description
        guard let mark = text.firstIndex(of: "e"), let exponent = Int(text[text.index(after: mark)...]) else {
            return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
        }
        let mantissa = text[..<mark]
        let sign = mantissa.hasPrefix("-") ? "-" : ""
        let parts = mantissa.drop { $0 == "-" }.split(separator: ".")
        let fraction = parts.count > 1 && parts[1] != "0" ? String(parts[1]) : ""
        let digits = (parts.first ?? "") + fraction
        // The place of the point in `digits`.
        let point = (parts.first?.count ?? 0) + exponent
        if point <= 0 { return "\(sign)0." + String(repeating: "0", count: -point) + digits }
        if point >= digits.count { return sign + digits + String(repeating: "0", count: point - digits.count) }
        return sign + digits.prefix(point) + "." + digits.dropFirst(point)
    }
}
