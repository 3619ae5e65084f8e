// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization
package import Text

/// The daemon's log: lines on stderr.
///
/// At a terminal a line reads `badged: warning: text`, with the name of the program. Everywhere else (journal, pipe,
/// file) it reads `<4>text` with the priority of syslog(3), which the journal removes; sd-daemon(3). Each line is one
/// `write` of at most PIPE_BUF bytes, so lines of different threads and processes never mix. A line that the reader does
/// not accept at once is lost; the next line that arrives says how many were lost.
package enum Log {
    package enum Level: Int, Sendable, CaseIterable, Comparable {
        /// badged, or a part of it, does not work until the fault is repaired.
        case error = 3
        /// A fault that does not stop badged: a wrong line of the configuration, a client beyond a limit.
        case warning = 4
        /// What users notice; the default level. Examples are a failed workflow with its reason, a card that cannot be
        /// used, and a refused command. Readers, boards, pcscd and the radio are reported when they appear and
        /// disappear.
        case notice = 5
        /// The normal course: workflows that succeed or are cancelled, settings, scans.
        case info = 6
        /// Each connection, and times.
        case debug = 7

        package var word: String {
            switch self {
            case .error: "error"
            case .warning: "warning"
            case .notice: "notice"
            case .info: "info"
            case .debug: "debug"
            }
        }

        package init?(_ word: String) {
            guard let level = Self.allCases.first(where: { $0.word == word }) else { return nil }
            self = level
        }

        package static let words = allCases.map(\.word).joined(separator: ", ")
        package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }

    /// Text for a log line: literals, strings and numbers.
    ///
    /// Other types do not compile, so a `\(value)` cannot log a PIN by mistake.
    package struct Message: Sendable, ExpressibleByStringInterpolation {
        package let text: String

        package init(stringLiteral value: String) { text = value }
        package init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }

        package struct StringInterpolation: StringInterpolationProtocol {
            fileprivate var text = ""

            package init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity * 2) }
            package mutating func appendLiteral(_ literal: String) { text += literal }
            package mutating func appendInterpolation(_ value: String) { text += value }
            package mutating func appendInterpolation(_ value: Phrase) { text += value.description }
            package mutating func appendInterpolation(_ value: some FixedWidthInteger) { text += String(value) }
        }
    }

    /// What a line is about, for `journalctl BADGED_READER=...`. Never a secret, and nothing of a card or a person.
    package struct Fields: Sendable, Equatable {
        /// The workflow, such as `AUTH`.
        package var workflow: String?
        /// The name of a card reader or a door reader.
        package var reader: String?
        /// The user of the client.
        package var uid: UInt32?

        package init(workflow: String? = nil, reader: String? = nil, uid: UInt32? = nil) {
            self.workflow = workflow
            self.reader = reader
            self.uid = uid
        }

        /// Names and values of the fields that are there.
        var entries: [(name: String, value: String)] {
            [("BADGED_WORKFLOW", workflow), ("BADGED_READER", reader), ("BADGED_UID", uid.map { String($0) })]
                .compactMap { name, value in value.map { (name, $0) } }
        }
    }

    /// The journal; nil: lines go to stderr.
    private static let journal = Mutex<JournalSocket?>(nil)
    private static let name = Mutex("badged")
    private static let threshold = Atomic<Int>(Level.notice.rawValue)
    private static let isTerminal = isatty(STDERR_FILENO) == 1
    private static let output = LogOutput(STDERR_FILENO)
    /// The longest text of a line in bytes. The limit keeps text of a client from filling the journal, and a line fits
    /// into PIPE_BUF.
    static let longest = 4000

    /// The lowest severity that is logged; `notice` at first.
    package static var level: Level {
        get { Level(rawValue: threshold.load(ordering: .relaxed)) ?? .notice }
        set { threshold.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// With what lines at a terminal begin, and those of `report`: a program of its own sets its name at first.
    package static var program: String {
        get { name.withLock { $0 } }
        set { name.withLock { $0 = newValue } }
    }

    /// The lines that were lost since the start, because the reader of the log was too slow.
    package static var lostLines: Int { output.lostLines }

    package static func error(_ message: @autoclosure () -> Message) { write(.error) { message() } }
    package static func warning(_ message: @autoclosure () -> Message) { write(.warning) { message() } }
    package static func notice(_ message: @autoclosure () -> Message) { write(.notice) { message() } }
    package static func info(_ message: @autoclosure () -> Message) { write(.info) { message() } }

    /// Logs at a level that is known only at run time.
    package static func write(_ level: Level, _ fields: Fields = Fields(), message: () -> Message) {
        guard level.rawValue <= threshold.load(ordering: .relaxed) else { return }
        let text = message().text
        let isSent = journal.withLock { $0 }?.send(level, escaped(text), fields) == true
        // Lines for a journal that is busy or away go to the stream that systemd keeps, where lost ones are counted.
        if !isSent { put(line(level, text, atTerminal: isTerminal)) }
    }

    /// Sends lines with their fields from now on if stderr is the journal.
    package static func useJournal() {
        guard isJournal(environment: systemEnvironment) else { return }
        journal.withLock { $0 = JournalSocket() }
    }

    /// Opens the output, for a program that cannot open files later.
    package static func open() { _ = (isTerminal, output) }

    /// Logs why the daemon does not start.
    package static func report(_ error: StartError) {
        put(error.text(toJournal: isJournal(environment: systemEnvironment)))
    }

    static func line(
        _ level: Level,
        _ text: String,
        atTerminal: Bool,
        program: String = program
    ) -> String {
        (atTerminal ? "\(program): \(level.word): " : "<\(level.rawValue)>") + escaped(text) + "\n"
    }

    /// Replaces control characters, direction characters, line separators and backslashes by `\u{HEX}`.
    ///
    /// So text cannot forge or hide a line. The result is truncated at `longest` bytes.
    package static func escaped(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            guard out.utf8.count < longest else { return out + "..." }
            if scalar == "\\" || scalar.isControl {
                out += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                out.unicodeScalars.append(scalar)
            }
        }
        return out
    }

    /// Whether stderr is the journal. `JOURNAL_STREAM` has device and inode of the stream that systemd made.
    /// systemd.exec(5).
    static func isJournal(environment: Environment) -> Bool {
        guard let stream = environment("JOURNAL_STREAM") else { return false }
        var status = stat()
        return fstat(STDERR_FILENO, &status) == 0 && stream == "\(status.st_dev):\(status.st_ino)"
    }

    private static func put(_ text: String) {
        output.write(text) { lost in
            line(.warning, "\(lost) log lines were lost: the reader of the log was too slow", atTerminal: isTerminal)
        }
    }
}

extension Failure {
    /// Runs work whose failure changes no answer, and logs the failure. `what` is what it means for the user.
    /// - Returns: the result; nil after a failure.
    @discardableResult
    package static func logged<Value>(
        _ what: String,
        of work: @autoclosure () async throws(Failure) -> Value
    ) async -> Value? {
        do throws(Failure) {
            return try await work()
        } catch {
            Log.warning("\(what): \(error.logText)")
            return nil
        }
    }
}
