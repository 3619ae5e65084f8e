// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Dates of mobile documents. ISO/IEC 18013-5, 7.2.1 and 9.1.2.4; RFC 3339; RFC 8943.
package enum MdocDate {
    /// A time in seconds since 1970: tdate, which is tag 0 with a text. An offset and a fraction are accepted.
    package static func seconds(_ item: CBOR) -> Int? {
        guard let (tag, content) = item.tagged, tag == 0, let text = content.text else { return nil }
        return seconds(text)
    }

    /// A day: full-date (tag 1004), and what some issuers write instead, a tdate or a plain text.
    package static func day(_ item: CBOR) -> CalendarDay? {
        let content = item.tagged.flatMap { $0.tag == 0 || $0.tag == 1004 ? $0.content : nil } ?? item
        guard let text = content.text else { return nil }
        let bytes = Array(text.utf8)
        guard bytes.count == 10 else { return seconds(text).map { CalendarDay(of: $0) } }
        return day(bytes)
    }

    private static func day(_ bytes: [UInt8]) -> CalendarDay? {
        guard bytes.count >= 10, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            let year = number(bytes, 0, 4), let month = number(bytes, 5, 2), let day = number(bytes, 8, 2)
        else { return nil }
        return CalendarDay(year: year, month: month, day: day)
    }

    private static func seconds(_ text: String) -> Int? {
        let bytes = Array(text.utf8)
        guard (20...40).contains(bytes.count), let day = day(bytes), bytes[10] | 0x20 == UInt8(ascii: "t"),
            bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"), let hour = number(bytes, 11, 2), hour < 24,
            let minute = number(bytes, 14, 2), minute < 60, let second = number(bytes, 17, 2), second < 61
        else { return nil }
        var rest = bytes[19...]
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty else { return nil }
            rest = rest.dropFirst(digits.count + 1)
        }
        guard let offset = offset(Array(rest)) else { return nil }
        return day.start + hour * 3600 + minute * 60 + second - offset
    }

    /// `Z`, or hours and minutes that the place is ahead, in seconds.
    private static func offset(_ bytes: [UInt8]) -> Int? {
        if bytes.count == 1, bytes[0] | 0x20 == UInt8(ascii: "z") { return 0 }
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"), let hours = number(bytes, 1, 2), hours < 24,
            let minutes = number(bytes, 4, 2), minutes < 60
        else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "+"): return hours * 3600 + minutes * 60
        case UInt8(ascii: "-"): return -(hours * 3600 + minutes * 60)
        default: return nil
        }
    }

    private static func number(_ bytes: [UInt8], _ start: Int, _ count: Int) -> Int? {
        let digits = bytes[start..<start + count]
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }
}
