// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials

/// Reads dates of the SDK: `yyyy-MM-dd` in the Gregorian calendar, whichever calendar the user has.
enum CalendarDate {
    /// Returns midnight UTC of the day; nil when there is no such day.
    static func midnight(_ text: String) -> Date? {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [4, 2, 2], text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2D }),
            let year = Int(text.prefix(4)), let month = Int(text.dropFirst(5).prefix(2)), let day = Int(text.suffix(2)),
            year > 0, (1...12).contains(month), (1...length(ofMonth: month, in: year)).contains(day)
        else { return nil }
        // Counted from 1 March of the year 0: then a leap day is the last day of its year.
        let (shifted, monthFromMarch) = month > 2 ? (year, month - 3) : (year - 1, month + 9)
        let leapDays = shifted / 4 - shifted / 100 + shifted / 400
        let days = 365 * shifted + leapDays + (153 * monthFromMarch + 2) / 5 + day - 1
        return Date(timeIntervalSince1970: Double(days - 719_468) * 86_400)
    }

    private static func length(ofMonth month: Int, in year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
