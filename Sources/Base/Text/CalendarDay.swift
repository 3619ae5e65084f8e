// SPDX-License-Identifier: Apache-2.0

/// A day of the Gregorian calendar, in UTC.
package struct CalendarDay: Sendable, Equatable {
    package let year: Int
    package let month: Int
    package let day: Int

    /// Makes a day of the years 0 to 9999; nil if there is no such day.
    package init?(year: Int, month: Int, day: Int) {
        guard (0...9999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        let next = month == 12 ? Self.days(year + 1, 1, 1) : Self.days(year, month + 1, 1)
        guard Self.days(year, month, day) < next else { return nil }
        self.year = year
        self.month = month
        self.day = day
    }

    /// The day of a time in seconds since 1970.
    package init(of seconds: Int) {
        // The inverse of `days`.
        let shifted = seconds / 86_400 - (seconds % 86_400 < 0 ? 1 : 0) + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let number = shifted - era * 146_097
        let yearOfEra = (number - number / 1460 + number / 36_524 - number / 146_096) / 365
        let dayOfYear = number - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let march = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * march + 2) / 5 + 1
        month = march < 10 ? march + 3 : march - 9
        year = yearOfEra + era * 400 + (march < 10 ? 0 : 1)
    }

    /// The days from 1970-01-01 to a date. What a month has not is counted into the next one.
    package static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        // Eras of 400 years that begin in March, so that the leap day is the last one.
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted >= 0 ? shifted / 400 : (shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// The second since 1970 with which the day begins.
    package var start: Int { Self.days(year, month, day) * 86_400 }

    /// YYYY-MM-DD.
    package var text: String { "\(year.padded(to: 4))-\(month.padded(to: 2))-\(day.padded(to: 2))" }
}
