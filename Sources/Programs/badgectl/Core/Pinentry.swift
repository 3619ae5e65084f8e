// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Host
import Synchronization
import Text

/// One run of pinentry, the program that asks for a PIN in a window of its own. It reads commands of the Assuan
/// protocol.
///
/// The calls block, so they run on a queue of their own. Cancelling the task ends pinentry.
final class Pinentry: Sendable {
    enum Answer {
        /// The button for yes, or the typed secret.
        case yes(SecretBox?)
        /// The third button.
        case other
        case cancelled
        /// The terminal has no room for the text.
        case tooSmall
    }

    /// A command, such as `SETDESC`, and its text.
    struct Setting {
        let command: String
        let text: String

        init(_ command: String, _ text: String) { (self.command, self.text) = (command, text) }
    }

    private let process: Int32
    private let socket: Int32
    private let isEnded = Mutex(false)

    /// Whether the window of `CONFIRM` has a third button. That of GNOME leaves it out and says nothing. The first word of
    /// the flavor counts.
    static func hasThirdButton(_ path: String) async -> Bool {
        ["gtk2", "qt", "qt5", "qt6", "curses", "tty"].contains(await flavor(path).first ?? "")
    }

    /// Whether pinentry asks in the terminal: always, or because it has no display.
    static func asksInTerminal(_ path: String) async -> Bool {
        await flavor(path).contains { ["curses", "tty"].contains($0) }
    }

    /// The words of the flavor: `gtk2:curses` asks in a terminal where it has no display.
    private static func flavor(_ path: String) async -> [String] {
        guard case .yes(let flavor)? = await ask(path, [], "GETINFO flavor"), let flavor = flavor?.take() else {
            return []
        }
        return flavor.withBytes { bytes in
            bytes.split(separator: UInt8(ascii: ":")).map { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Starts the program at `path`; nil when it cannot be started.
    private init?(_ path: String) {
        var ends: [Int32] = [-1, -1]
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue
        guard socketpair(AF_UNIX, Int32(type), 0, &ends) == 0 else { return nil }
        let process = ChildProcess.start(path, [], standard: (ends[1], ends[1]))
        Glibc.close(ends[1])
        guard let process else {
            Glibc.close(ends[0])
            return nil
        }
        self.process = process
        socket = ends[0]
    }

    deinit { Glibc.close(socket) }

    /// Asks one question.
    ///
    /// - Parameters:
    ///   - path: the program.
    ///   - settings: what the window shows.
    ///   - command: `GETPIN`, `CONFIRM` or `GETINFO`.
    /// - Returns: the answer; nil when pinentry cannot be started or does not work here.
    static func ask(_ path: String, _ settings: [Setting], _ command: String) async -> Answer? {
        guard let pinentry = Pinentry(path) else { return nil }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                DispatchQueue(label: "pinentry").async {
                    let answer = pinentry.converse(settings, command)
                    pinentry.end()
                    continuation.resume(returning: answer)
                }
            }
        } onCancel: {
            pinentry.stop()
        }
    }

    /// Ends the program early, which ends `converse`.
    private func stop() { isEnded.withLock { if !$0 { kill(process, SIGTERM) } } }

    private func end() {
        shutdown(socket, Int32(SHUT_RDWR))
        var info = siginfo_t()
        while waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        // The id is free for another process from here on.
        isEnded.withLock { isEnded in
            isEnded = true
            waitpid(process, nil, 0)
        }
    }

    // MARK: Assuan

    private func converse(_ settings: [Setting], _ command: String) -> Answer? {
        let lines = LineBuffer(limit: AssuanReply.longestLine)
        guard case .done = result(lines) else { return nil }
        for setting in Self.surroundings + settings {
            send("\(setting.command) \(Self.escaped(setting.text))")
            // An old pinentry does not know every option.
            guard result(lines) != nil else { return nil }
        }
        send(command)
        switch result(lines) {
        case .done(let secret):
            send("BYE")
            _ = result(lines)
            return .yes(secret)
        // The codes of libgpg-error: canceled, not confirmed, screen or window too small.
        case .error(99): return .cancelled
        case .error(114): return .other
        case .error(301): return .tooSmall
        case .error, nil: return nil
        }
    }

    /// Reads the answer to a command; nil at the end of pinentry, and when it breaks the protocol.
    private func result(_ lines: LineBuffer) -> AssuanReply.Result? {
        var reply = AssuanReply()
        while true {
            switch lines.next() {
            case .text(let line):
                do throws(Malformed) {
                    if let result = try reply.receive(line) { return result }
                } catch {
                    return nil
                }
            case .tooLong: return nil
            case nil:
                let count = lines.fill { Glibc.read(socket, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return nil }
            }
        }
    }

    private func send(_ line: String) { Output.write(line + "\n", to: socket) }

    /// The terminal and the language, which pinentry needs where it has no window.
    private static var surroundings: [Setting] {
        func value(_ names: String...) -> String? {
            names.lazy.compactMap { getenv($0) }.map { String(cString: $0) }.first { !$0.isEmpty }
        }
        var settings = [
            // The window of GNOME shows the prompt of a question as its title.
            Setting("SETTITLE", "badged"), Setting("SETPROMPT", "badged"),
            Setting("OPTION", "default-ok=\(tr("OK"))"), Setting("OPTION", "default-cancel=\(tr("Cancel"))"),
        ]
        if access("/dev/tty", R_OK | W_OK) == 0 { settings.append(Setting("OPTION", "ttyname=/dev/tty")) }
        if let type = value("TERM") { settings.append(Setting("OPTION", "ttytype=\(type)")) }
        if let locale = value("LC_ALL", "LC_CTYPE", "LANG") { settings.append(Setting("OPTION", "lc-ctype=\(locale)")) }
        return settings
    }

    /// Escapes a text for a line of the protocol, and shortens it to the length of a line. Control characters would
    /// reach the terminal of a pinentry without windows.
    ///
    /// pinentry decodes bytes, so a percent sign is escaped whatever follows it, such as a combining mark.
    static func escaped(_ text: String) -> String { escaped(text.printableLines.unicodeScalars, longestText).text }

    /// Whether `escaped` shortens the text.
    static func fits(_ text: String) -> Bool {
        let scalars = text.printableLines.unicodeScalars
        return escaped(scalars, longestText).end == scalars.endIndex
    }

    /// Escapes the scalars that fit into `maximum` bytes, and returns the place of the first one that does not.
    private static func escaped<Scalars: Collection<Unicode.Scalar>>(
        _ scalars: Scalars,
        _ maximum: Int
    ) -> (text: String, end: Scalars.Index) {
        var escaped = ""
        let end = scalars.firstIndex { scalar in
            let next =
                switch scalar {
                case "%": "%25"
                case "\n": "%0A"
                default: String(scalar)
                }
            let fits = escaped.utf8.count + next.utf8.count <= maximum
            if fits { escaped += next }
            return !fits
        }
        return (escaped, end ?? scalars.endIndex)
    }

    /// The longest text of a setting, in bytes after escaping.
    private static let longestText = AssuanReply.longestLine - 20

    /// The lines and columns of text for which a window has room.
    struct Room: Equatable {
        var lines = Int.max
        var columns = Layout.columns

        /// Without a known limit, and then for a pinentry that asks in the terminal: its frame, an empty line and the
        /// buttons take four lines and four columns. The last ones are for one with larger buttons.
        static var all: [Room] {
            let terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY)
            defer { if terminal >= 0 { Glibc.close(terminal) } }
            let (height, width) = (Layout.height(of: terminal), min(Layout.width(of: terminal), Layout.columns + 4))
            return [Room()] + [height - 4, height / 2, 4].map { Room(lines: max(3, $0), columns: width - 4) }
        }
    }

    /// Splits a text into parts that fit into one window: at its line ends, and inside a line that is too long. `title`
    /// is the first line of each part.
    static func pages(_ text: String, title: String? = nil, in room: Room = Room()) -> [String] {
        let longestText = longestText - (title.map { escaped($0).utf8.count + 3 } ?? 0)
        let mostLines = room.lines - (title == nil ? 0 : 1)
        var pages: [String] = []
        var size = 0
        var lines = 0
        for line in Layout.wrapped(text, columns: room.columns).printableLines.unicodeScalars.split(
            separator: "\n",
            omittingEmptySubsequences: false
        ) {
            var rest = line
            repeat {
                let begun = escaped(rest, longestText)
                let part = String(rest[..<begun.end])
                rest = rest[begun.end...]
                let count = begun.text.utf8.count + 3
                if let last = pages.indices.last, size + count <= longestText, lines < mostLines {
                    pages[last] += "\n" + part
                    size += count
                    lines += 1
                } else {
                    pages.append(part)
                    size = count - 3
                    lines = 1
                }
            } while !rest.isEmpty
        }
        if let title { return pages.map { "\(title)\n\($0)" } }
        return pages
    }
}
