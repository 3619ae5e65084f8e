// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Times as text: seconds since 1970 as `2026-11-22T10:00:00Z`. RFC 3339.
package enum DateText {
    package static func text(_ seconds: Int) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let date = "\(Int(parts.tm_year) + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        return "\(date)T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
    }

    /// Reads a time of the years 1970 to 9999 in UTC; nil for other forms and for days that do not exist.
    package static func seconds(_ text: String) -> Int? {
        let bytes = Array(text.utf8)
        guard bytes.count == 20 else { return nil }
        var numbers: [Int32] = []
        for (start, count) in [(0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2)] {
            let digits = bytes[start..<start + count]
            guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            numbers.append(digits.reduce(0) { $0 * 10 + Int32($1 - 0x30) })
        }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (numbers[0] - 1900, numbers[1] - 1, numbers[2])
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (numbers[3], numbers[4], numbers[5])
        guard numbers[0] >= 1970 else { return nil }
        let seconds = Int(timegm(&parts))
        // A time that exists is written as it was read.
        return Self.text(seconds) == text ? seconds : nil
    }
}
