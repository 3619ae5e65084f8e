// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Testing
import Text

@Suite("Days of the calendar") struct CalendarDayTests {
    @Test("each day from 1890 to 2410 is that of the C library, and is followed by the next one")
    func days() {
        for number in stride(from: -30_000, to: 161_000, by: 1) {
            var (seconds, parts) = (time_t(number * 86_400 + 86_399), tm())
            gmtime_r(&seconds, &parts)
            let day = CalendarDay(of: seconds)
            let same =
                day.year == Int(parts.tm_year + 1900) && day.month == Int(parts.tm_mon + 1)
                && day.day == Int(parts.tm_mday)
            let again = CalendarDay(year: day.year, month: day.month, day: day.day)
            // An expectation for each day would take most of the time.
            if !same || day.start != number * 86_400 || again != day { Issue.record("\(day.text), \(number)") }
        }
    }

    @Test(
        "a day that does not exist is refused",
        arguments: [
            (2023, 2, 29), (1900, 2, 29), (2024, 2, 30), (2024, 4, 31), (2024, 0, 1), (2024, 13, 1), (2024, 1, 0),
            (-1, 1, 1), (10_000, 1, 1), (.max, .max, .max), (2024, 1, .min),
        ]
    )
    func wrong(year: Int, month: Int, day: Int) { #expect(CalendarDay(year: year, month: month, day: day) == nil) }

    @Test(
        "a day is written with four digits of the year",
        arguments: [(0, "1970-01-01"), (-62_000_000_000, "0005-04-19")]
    )
    func text(seconds: Int, text: String) { #expect(CalendarDay(of: seconds).text == text) }

    @Test("the ends of the numbers are days, too")
    func ends() { for seconds in [Int.min, .max] { #expect(!CalendarDay(of: seconds).text.isEmpty) } }
}
