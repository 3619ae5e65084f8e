// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Glibc

extension CVDate {
    /// The current day in UTC.
    package static var today: CVDate { day(time(nil)) }

    /// The day that is this many days later, or earlier.
    func advanced(days: Int) -> CVDate {
        var fields = tm()
        fields.tm_year = Int32(year - 1900)
        fields.tm_mon = Int32(month - 1)
        fields.tm_mday = Int32(day)
        return Self.day(timegm(&fields) + days * 86_400)
    }

    private static func day(_ seconds: time_t) -> CVDate {
        var seconds = seconds
        var fields = tm()
        gmtime_r(&seconds, &fields)
        // CV certificates have no dates outside 2000 to 2099.
        return CVDate(year: Int(fields.tm_year) + 1900, month: Int(fields.tm_mon) + 1, day: Int(fields.tm_mday)) ?? last
    }

    private static let last = CVDate(bytes: [9, 9, 1, 2, 3, 1]) ?? today

    /// YYYYMMDD this many years ago; 28 February for 29 February.
    func yearsAgo(_ years: Int) -> [UInt8] {
        let shortened = month == 2 && day == 29 ? 28 : day
        return Self.digits(year - years, month, shortened)
    }

    /// YYYYMMDD, as in auxiliary data.
    var eightDigits: [UInt8] { Self.digits(year, month, day) }

    private static func digits(_ year: Int, _ month: Int, _ day: Int) -> [UInt8] {
        let number = max(year, 0) * 10_000 + month * 100 + day
        let text = String(number)
        return Array((String(repeating: "0", count: max(8 - text.count, 0)) + text).utf8)
    }
}
