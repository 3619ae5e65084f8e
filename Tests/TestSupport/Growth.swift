// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Foundation
import Glibc

/// Measures whether work takes time in proportion to its input.
package enum Growth {
    /// Texts whose repetition has made parsers slow: what one `Character` swallows without end, what a step back has to
    /// look at again, what normalisation sorts, and what nests.
    package static let alphabets: [(name: String, text: String)] = [
        ("regional indicators", "\u{1F1E6}"), ("a combining mark", "\u{301}"), ("marks to sort", "\u{323}\u{301}"),
        ("letters with a mark", "e\u{301}"), ("emoji that are joined", "\u{1F469}\u{200D}"), ("joiners", "\u{200D}"),
        ("leading consonants", "\u{1100}"), ("vowels of Hangul", "\u{1161}"),
        ("syllables of Hangul", "\u{1100}\u{1161}\u{11A8}"), ("signs of Arabic numbers", "\u{600}"),
        ("conjuncts", "\u{915}\u{94D}"), ("modifiers of emoji", "\u{1F3FB}"), ("carriage returns", "\r"),
        ("line ends", "\r\n"), ("line feeds", "\n"), ("spaces", " "), ("spaces of other scripts", "\u{A0}\u{2003}"),
        ("letters", "a"), ("digits", "1"), ("zeros", "0"), ("quotation marks", "\""), ("apostrophes", "'"),
        ("backslashes", "\\"), ("slashes", "/"), ("dots", "."), ("colons", ":"), ("commas", ","), ("semicolons", ";"),
        ("equals signs", "="), ("percent signs", "%"), ("question marks", "?"), ("ampersands", "&"), ("dollars", "$"),
        ("number signs", "#"), ("open brackets", "["), ("brackets", "[]"), ("open braces", "{"), ("members", "{\"a\":"),
        ("open angle brackets", "<"), ("elements", "<a>"), ("comments", "<!--"), ("ends of comments", "-->"),
        ("open parentheses", "("), ("dashes", "-"), ("underscores", "_"),
    ]

    /// The time of the processor that `body` takes on this thread, in seconds: the least of `runs`.
    package static func time(runs: Int = 3, _ body: () -> Void) -> Double {
        var least = Double.infinity
        for _ in 0..<runs {
            let begin = clock
            body()
            least = min(least, clock - begin)
        }
        return least
    }

    /// By how much the time grows from a size to twice the size. Time below a millisecond counts as one.
    package static func factor(runs: Int = 3, from size: Int, _ body: (_ size: Int) -> Void) -> Double {
        let double = max(0.001, time(runs: runs) { body(2 * size) })
        return double / max(0.001, time(runs: runs) { body(size) })
    }

    /// Whether `parse` takes at most 2.5 times as long for twice as many bytes of this text. Below 20 ms it is quick enough.
    package static func isInProportion(from size: Int, _ text: String, _ parse: (String) -> Void) -> Bool {
        let (short, long) = (run(of: text, bytes: size), run(of: text, bytes: 2 * size))
        guard time(runs: 1, { parse(long) }) > 0.02 else { return true }
        return isInProportion(from: size) { parse($0 == size ? short : long) }
    }

    /// Whether the time of `body` grows by at most `limit` from a size to twice the size. A measurement on a busy machine
    /// is repeated.
    package static func isInProportion(
        from size: Int,
        limit: Double = limit,
        _ body: (_ size: Int) -> Void
    ) -> Bool {
        (0..<10).contains { _ in factor(from: size, body) <= limit }
    }

    /// The alphabets for which a parser takes longer than in proportion. With full tables there are more, and longer texts.
    package static func slowAlphabets(
        _ parser: (name: String, size: Int, parse: @Sendable (String) -> Void)
    ) async -> [String] {
        let size = FullTables.areWanted ? parser.size : min(parser.size, 20_000)
        return await measured {
            alphabets.prefix(FullTables.areWanted ? .max : 15).compactMap { alphabet in
                isInProportion(from: size, alphabet.text, parser.parse) ? nil : "\(parser.name): \(alphabet.name)"
            }
        }
    }

    /// Runs long measurements, two at a time, on threads of their own. Those of a queue would not do: two that compute are
    /// all that there may be on two processors, and tasks of other tests would wait for minutes.
    /// A test that waits has one of the places of the tests, so those with arguments are `.serialized`.
    package static func measured<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                places.wait()
                defer { places.signal() }
                continuation.resume(returning: work())
            }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }

    private static let places = DispatchSemaphore(value: 2)

    /// The largest factor that work in proportion to its input may have.
    package static let limit = 2.5

    /// `text`, repeated to this number of bytes or a few less.
    package static func run(of text: String, bytes: Int) -> String {
        String(repeating: text, count: max(1, bytes / text.utf8.count))
    }

    private static var clock: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
