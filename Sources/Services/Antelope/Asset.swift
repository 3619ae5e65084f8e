// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The name of a token: 1 to 7 capital letters.
package struct SymbolCode: Sendable, Hashable, CustomStringConvertible {
    /// The letters, the first one in the lowest byte.
    package let value: UInt64

    package init(_ text: some StringProtocol) throws(Malformed) {
        let letters = Array(text.utf8)
        guard (1...7).contains(letters.count), letters.allSatisfy({ (0x41...0x5A).contains($0) }) else {
            throw Malformed("a symbol has 1 to 7 capital letters")
        }
        value = letters.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// - Throws: `Malformed` unless the bytes are capital letters followed by zeros.
    package init(value: UInt64) throws(Malformed) {
        let bytes = (0..<8).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }
        let letters = bytes.prefix { $0 != 0 }
        guard bytes[letters.count...].allSatisfy({ $0 == 0 }) else {
            throw Malformed("a symbol has bytes after its letters")
        }
        try self.init(String(decoding: letters, as: UTF8.self))
    }

    package var description: String {
        String(
            decoding: (0..<7).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * $0)) }.prefix { $0 != 0 },
            as: UTF8.self
        )
    }
}

/// A token with the number of its decimals, such as `4,EOS`.
package struct TokenSymbol: Sendable, Hashable, CustomStringConvertible {
    package let precision: Int
    package let code: SymbolCode

    package static let maximumPrecision = 18

    package init(precision: Int, code: SymbolCode) throws(Malformed) {
        guard (0...Self.maximumPrecision).contains(precision) else {
            throw Malformed("a token has 0 to 18 decimals")
        }
        self.precision = precision
        self.code = code
    }

    /// Reads a text such as `4,EOS`.
    package init(_ text: String) throws(Malformed) {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }), let precision = Int(parts[0])
        else { throw Malformed("a symbol is written like 4,EOS") }
        try self.init(precision: precision, code: SymbolCode(parts[1]))
    }

    package init(value: UInt64) throws(Malformed) {
        try self.init(precision: Int(value & 0xFF), code: SymbolCode(value: value >> 8))
    }

    package var value: UInt64 { code.value << 8 | UInt64(precision) }
    package var description: String { "\(precision),\(code)" }
}

/// An amount of a token, such as `1.0000 EOS`.
package struct Asset: Sendable, Hashable, CustomStringConvertible {
    /// In the smallest unit.
    package let amount: Int64
    package let symbol: TokenSymbol

    /// The largest amount of a token. The C++ constant is asset::max_amount.
    package static let maximumAmount: Int64 = (1 << 62) - 1

    package init(amount: Int64, symbol: TokenSymbol) throws(Malformed) {
        guard (-Self.maximumAmount...Self.maximumAmount).contains(amount) else {
            throw Malformed("the amount is too large")
        }
        self.amount = amount
        self.symbol = symbol
    }

    /// Reads a text such as `1.0000 EOS`; the number of decimals is the precision.
    package init(_ text: String) throws(Malformed) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 2 else { throw Malformed("an amount is written like 1.0000 EOS") }
        try self.init(decimal: parts[0], code: SymbolCode(parts[1]), precision: nil)
    }

    /// Reads a decimal number. If there are fewer decimals than `precision`, zeros are added; more decimals are
    /// refused. If `precision` is nil, it is the number of decimals in the text.
    package init(decimal text: some StringProtocol, code: SymbolCode, precision: Int?) throws(Malformed) {
        let isNegative = text.hasPrefix("-")
        let parts = text.utf8.dropFirst(isNegative ? 1 : 0).split(
            separator: UInt8(ascii: "."),
            omittingEmptySubsequences: false
        )
        guard (1...2).contains(parts.count), parts.allSatisfy({ !$0.isEmpty }),
            parts.joined().allSatisfy({ (0x30...0x39).contains($0) })
        else { throw Malformed("'\(text.prefix(64))' is not a decimal number") }
        let decimals = parts.count == 2 ? parts[1].count : 0
        let precision = precision ?? decimals
        guard decimals <= precision else {
            throw Malformed("'\(text.prefix(64))' has more than \(precision) decimals")
        }
        let symbol = try TokenSymbol(precision: precision, code: code)
        var amount: Int64 = 0
        for digit in parts.joined() + [UInt8](repeating: 0x30, count: precision - decimals) {
            let (product, isTooLarge) = amount.multipliedReportingOverflow(by: 10)
            let (sum, overflows) = product.addingReportingOverflow(Int64(digit - 0x30))
            guard !isTooLarge, !overflows else { throw Malformed("the amount is too large") }
            amount = sum
        }
        try self.init(amount: isNegative ? -amount : amount, symbol: symbol)
    }

    package var description: String {
        let digits = amount.magnitude.padded(to: symbol.precision + 1)
        let point = digits.index(digits.endIndex, offsetBy: -symbol.precision)
        let decimals = symbol.precision > 0 ? "." + digits[point...] : ""
        return "\(amount < 0 ? "-" : "")\(digits[..<point])\(decimals) \(symbol.code)"
    }
}
