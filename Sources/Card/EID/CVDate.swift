// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// A day from 2000 to 2099. CV certificates encode it as six bytes with one digit each, YYMMDD. TR-03110-3 D.2.1.3.
package struct CVDate: Sendable, Hashable, Comparable {
    /// 2000 to 2099.
    package let year: Int
    /// 1 to 12.
    package let month: Int
    /// 1 to 31.
    package let day: Int

    /// Makes a day; nil when there is no such day.
    package init?(year: Int, month: Int, day: Int) {
        guard (2000...2099).contains(year), CalendarDay(year: year, month: month, day: day) != nil else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    private init(january year: Int) { (self.year, month, day) = (year, 1, 1) }

    /// The first day that can be encoded.
    package static let earliest = CVDate(january: 2000)

    package init?(bytes: [UInt8]) {
        guard bytes.count == 6, bytes.allSatisfy({ $0 <= 9 }) else { return nil }
        let digits = bytes.map(Int.init)
        self.init(
            year: 2000 + digits[0] * 10 + digits[1],
            month: digits[2] * 10 + digits[3],
            day: digits[4] * 10 + digits[5]
        )
    }

    package var bytes: [UInt8] {
        [year - 2000, month, day].flatMap { [UInt8(truncatingIfNeeded: $0 / 10), UInt8(truncatingIfNeeded: $0 % 10)] }
    }

    /// The day as `yyyy-MM-dd`.
    package var text: String { "\(year)-\(month.padded(to: 2))-\(day.padded(to: 2))" }

    package static func < (a: CVDate, b: CVDate) -> Bool {
        (a.year, a.month, a.day) < (b.year, b.month, b.day)
    }
}
