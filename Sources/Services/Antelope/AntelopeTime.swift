// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// A time in UTC, in microseconds since 1970.
package struct AntelopeTime: Sendable, Hashable {
    package let microseconds: Int64

    package init(microseconds: Int64) { self.microseconds = microseconds }
    package init(seconds: UInt32) { microseconds = Int64(seconds) * 1_000_000 }

    /// - Parameter slot: half seconds since 2000.
    init(slot: UInt32) { microseconds = Self.year2000 + Int64(slot) * 500_000 }

    private static let year2000: Int64 = 946_684_800_000_000

    /// Reads a text such as `2018-06-15T19:17:47.000`; the zone `Z` may be written.
    package init(_ text: String) throws(Malformed) {
        let failure = Malformed("expected a time such as 2018-06-15T19:17:47.000")
        let bytes = Array(text.utf8)
        func number(_ range: Range<Int>) throws(Malformed) -> Int {
            guard range.upperBound <= bytes.count, bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw failure
            }
            return bytes[range].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        }
        let (year, month, day) = (try number(0..<4), try number(5..<7), try number(8..<10))
        let (hour, minute, second) = (try number(11..<13), try number(14..<16), try number(17..<19))
        let marks = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")]
        guard marks.allSatisfy({ bytes[$0.0] == $0.1.utf8.first }), year >= 1970,
            let date = CalendarDay(year: year, month: month, day: day), hour < 24, minute < 60, second < 60
        else { throw failure }
        var rest = bytes[19...]
        var fraction: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard (1...9).contains(digits.count), digits.dropFirst(6).allSatisfy({ $0 == 0x30 }) else { throw failure }
            for index in 0..<6 {
                fraction = fraction * 10 + (index < digits.count ? Int64(digits[digits.startIndex + index] - 0x30) : 0)
            }
            rest = rest.dropFirst(1 + digits.count)
        }
        guard rest.isEmpty || rest.elementsEqual("Z".utf8) else { throw failure }
        microseconds = Int64(date.start + (hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    }

    /// Whole seconds.
    package var seconds: UInt32 {
        get throws(Malformed) {
            guard let seconds = UInt32(exactly: microseconds / 1_000_000) else {
                throw Malformed("the time is after 2106")
            }
            return seconds
        }
    }

    /// Half seconds since 2000.
    var slot: UInt32 {
        get throws(Malformed) {
            guard let slot = UInt32(exactly: (microseconds - Self.year2000) / 500_000), microseconds >= Self.year2000
            else { throw Malformed("the time is not a block time") }
            return slot
        }
    }

    /// The time with 0, 3 or 6 decimals. A time outside the years 1970 to 9999 is written as a number of microseconds.
    package func text(decimals: Int) -> String {
        let day = CalendarDay(of: Int(microseconds / 1_000_000))
        guard microseconds >= 0, day.year < 10_000 else { return "\(microseconds) microseconds" }
        let rest = microseconds % 86_400_000_000
        let seconds = rest / 1_000_000
        let parts = [seconds / 3600, seconds / 60 % 60, seconds % 60]
        let time = parts.map { $0.padded(to: 2) }.joined(separator: ":")
        let fraction = (rest % 1_000_000).padded(to: 6).prefix(decimals)
        return "\(day.text)T\(time)" + (decimals > 0 ? ".\(fraction)" : "")
    }
}
