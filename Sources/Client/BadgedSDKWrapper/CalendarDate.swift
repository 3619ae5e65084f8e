// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import Text

/// Reads dates of the SDK: `yyyy-MM-dd` in the Gregorian calendar, whichever calendar the user has.
enum CalendarDate {
    /// Returns midnight UTC of the day; nil when there is no such day.
    static func midnight(_ text: String) -> Date? {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [4, 2, 2], text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2D }),
            let year = Int(text.prefix(4)), let month = Int(text.dropFirst(5).prefix(2)), let day = Int(text.suffix(2)),
            year > 0, let date = CalendarDay(year: year, month: month, day: day)
        else { return nil }
        return Date(timeIntervalSince1970: Double(date.start))
    }
}
