// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Testing

@testable import Host

@Suite("The log")
struct LogTests {
    @Test("a line begins with its priority, and on a terminal with the program and the level")
    func prefix() {
        #expect(Log.line(.warning, "a", atTerminal: false) == "<4>a\n")
        #expect(Log.line(.warning, "a", atTerminal: true) == "badged: warning: a\n")
    }

    @Test(
        "control characters in a message cannot forge or hide a line",
        arguments: [
            ("a\n<3>b", "a\\u{a}<3>b"), ("\u{1B}[2J", "\\u{1b}[2J"), ("\r\u{7F}\u{85}", "\\u{d}\\u{7f}\\u{85}"),
            ("\u{2028}\u{202E}\u{0}", "\\u{2028}\\u{202e}\\u{0}"), ("\\u{a}", "\\u{5c}u{a}"),
            ("\u{2066}\u{200B}", "\\u{2066}\\u{200b}"), ("grün €", "grün €"),
        ]
    )
    func escaping(text: String, expected: String) {
        #expect(Log.escaped(text) == expected)
    }

    @Test("a long message is truncated")
    func length() {
        let line = Log.line(.info, String(repeating: "\n", count: 1 << 20), atTerminal: false)
        #expect(line.utf8.count < Log.longest + 20 && line.hasSuffix("...\n"))
    }

    @Test("only the defined words are log levels")
    func levels() {
        #expect(Log.Level.allCases.map { Log.Level($0.word) } == Log.Level.allCases)
        #expect(Log.Level("Error") == nil && Log.Level("3") == nil)
        #expect(Log.words(upTo: .warning) == ["error", "warning"])
    }

    @Test("stderr is the journal only when JOURNAL_STREAM holds its device and inode")
    func journal() {
        var status = stat()
        #expect(fstat(STDERR_FILENO, &status) == 0)
        let own = "\(status.st_dev):\(status.st_ino)"
        #expect(Log.isJournal { $0 == "JOURNAL_STREAM" ? own : nil })
        #expect(!Log.isJournal { $0 == "JOURNAL_STREAM" ? "1:1" : nil })
        #expect(!Log.isJournal { _ in nil })
    }
}

extension Log {
    fileprivate static func words(upTo level: Level) -> [String] {
        Level.allCases.filter { $0 <= level }.map(\.word)
    }
}
