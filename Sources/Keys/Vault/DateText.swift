// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// Times as text: seconds since 1970 as `2026-11-22T10:00:00Z`. RFC 3339.
package enum DateText {
    package static func text(_ seconds: Int) -> String {
        let day = CalendarDay(of: seconds)
        let time = (seconds % 86_400 + 86_400) % 86_400
        let parts = [time / 3600, time / 60 % 60, time % 60]
        return "\(day.text)T\(parts.map { $0.padded(to: 2) }.joined(separator: ":"))Z"
    }

    /// Reads a time of the years 1970 to 9999 in UTC; nil for other forms and for days that do not exist.
    package static func seconds(_ text: String) -> Int? {
        let bytes = Array(text.utf8)
        guard bytes.count == 20 else { return nil }
        var numbers: [Int] = []
        for (start, count) in [(0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2)] {
            let digits = bytes[start..<start + count]
            guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            numbers.append(digits.reduce(0) { $0 * 10 + Int($1 - 0x30) })
        }
        guard numbers[0] >= 1970, let day = CalendarDay(year: numbers[0], month: numbers[1], day: numbers[2]) else {
            return nil
        }
        let seconds = day.start + (numbers[3] * 60 + numbers[4]) * 60 + numbers[5]
        // A time that exists is written as it was read.
        return Self.text(seconds) == text ? seconds : nil
    }
}
