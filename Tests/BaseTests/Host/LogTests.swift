// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing

@testable import Host

@Suite("The log", .timeLimit(.minutes(5)))
struct LogTests {
    @Test("a line begins with its priority, and on a terminal with the program and the level")
    func prefix() {
        #expect(Log.line(.warning, "a", atTerminal: false) == "<4>a\n")
        #expect(Log.line(.warning, "a", atTerminal: true) == "badged: warning: a\n")
        #expect(Log.line(.warning, "a", atTerminal: true, program: "badged-osdp") == "badged-osdp: warning: a\n")
    }

    @Test(
        "control characters in a message cannot forge or hide a line",
        arguments: [
            ("a\n<3>b", "a\\u{a}<3>b"), ("\u{1B}[2J", "\\u{1b}[2J"), ("\r\u{7F}\u{85}", "\\u{d}\\u{7f}\\u{85}"),
            ("\u{2028}\u{202E}\u{0}", "\\u{2028}\\u{202e}\\u{0}"), ("\\u{a}", "\\u{5c}u{a}"),
            ("\u{2066}\u{200B}", "\\u{2066}\\u{200b}"), ("grün €", "grün €"),
            ("\u{AD}\u{180E}\u{FFF9}\u{E0041}", "\\u{ad}\\u{180e}\\u{fff9}\\u{e0041}"),
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

    private static func pipe() -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        return Glibc.pipe(&ends) == 0 ? (ends[0], ends[1]) : (-1, -1)
    }

    private static func socket() -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        return socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 ? (ends[0], ends[1]) : (-1, -1)
    }

    private static func drain(_ descriptor: Int32) -> String {
        var (text, bytes): ([UInt8], [UInt8]) = ([], Array(repeating: 0, count: 65_536))
        while true {
            let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
            let got = count < 0 && errno == ENOTSOCK ? nonBlockingRead(descriptor, &bytes) : count
            guard got > 0 else { return String(decoding: text, as: UTF8.self) }
            text += bytes[..<got]
        }
    }

    private static func nonBlockingRead(_ descriptor: Int32, _ bytes: inout [UInt8]) -> Int {
        var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&ready, 1, 0) == 1 ? read(descriptor, &bytes, bytes.count) : 0
    }

    @Test(
        "a slow reader of the log loses lines, gets their number, and never blocks the writer",
        arguments: [true, false]
    )
    func slowReader(isPipe: Bool) throws {
        let ends = isPipe ? Self.pipe() : Self.socket()
        defer {
            close(ends.read)
            close(ends.write)
        }
        let output = LogOutput(ends.write)
        let line = String(repeating: "x", count: 99) + "\n"
        for _ in 0..<20_000 { output.write(line) { "lost \($0)\n" } }
        let lines = Self.drain(ends.read).split(separator: "\n")
        #expect(lines.count > 100 && lines.count < 20_000)
        let whole = lines.count { $0.utf8.count == 99 }
        output.write("next\n") { "lost \($0)\n" }
        output.write("last\n") { "lost \($0)\n" }
        let rest = Self.drain(ends.read)
        #expect(rest.hasSuffix("\nnext\nlast\n"), "\(rest)")
        // A short line about a loss may fit where a long one does not, so there may be several.
        let told = (lines + rest.split(separator: "\n")).filter { $0.hasPrefix("lost ") }.compactMap {
            Int($0.dropFirst(5))
        }
        #expect(told.reduce(0, +) == 20_000 - whole)
        // Other processes share the descriptor, so its mode is the same as before.
        #expect(fcntl(ends.write, F_GETFL) & O_NONBLOCK == 0)
    }

    // MARK: The journal

    /// A socket in place of that of journald; boot.sh has the real one.
    private static func journal() throws -> (path: String, descriptor: Int32) {
        let path = UnixSocket.temporaryPath
        return (path, try UnixSocket.bind(to: path, SOCK_DGRAM))
    }

    @Test("a line for the journal has its fields, and no value can add another one")
    func fields() throws {
        let (path, descriptor) = try Self.journal()
        defer {
            close(descriptor)
            unlink(path)
        }
        let socket = try #require(JournalSocket(path: path))
        #expect(socket.send(.notice, "text", Log.Fields(workflow: "AUTH", reader: "Desk 1", uid: 1000)))
        #expect(
            Self.drain(descriptor)
                == "MESSAGE=text\nPRIORITY=5\nSYSLOG_IDENTIFIER=badged\nBADGED_WORKFLOW=AUTH\nBADGED_READER=Desk 1\n"
                + "BADGED_UID=1000\n"
        )
        #expect(socket.send(.info, "text", Log.Fields(reader: "a\nPRIORITY=0\n" + String(repeating: "x", count: 5000))))
        let lines = Self.drain(descriptor).split(separator: "\n")
        #expect(lines.count == 4 && lines.filter { $0.hasPrefix("PRIORITY=") } == ["PRIORITY=6"])
        #expect(lines.last?.hasPrefix(#"BADGED_READER=a\u{a}PRIORITY=0"#) == true)
        #expect(lines.allSatisfy { $0.utf8.count <= 300 })
    }

    @Test("a journal that is away or does not read takes no line, and nobody waits for it")
    func busyJournal() throws {
        let (path, descriptor) = try Self.journal()
        let socket = try #require(JournalSocket(path: path))
        var sent = 0
        while sent < 100_000, socket.send(.notice, String(repeating: "x", count: 1000), Log.Fields()) { sent += 1 }
        #expect(sent > 0 && sent < 100_000)
        #expect(!Self.drain(descriptor).isEmpty && socket.send(.notice, "again", Log.Fields()))
        close(descriptor)
        unlink(path)
        #expect(!socket.send(.notice, "text", Log.Fields()))
        let long = JournalSocket(path: "/" + String(repeating: "x", count: 200))
        #expect(long == nil)
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
