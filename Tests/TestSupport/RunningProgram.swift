// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Glibc
import Synchronization
import Text

/// A running program of this package. Its outputs are collected; the test writes its input and sends its signals.
/// The program can have a controlling terminal, which is its /dev/tty.
package final class RunningProgram: Sendable {
    package struct StartError: Error { package let text: String }

    /// The outputs of the program.
    package enum Stream: Sendable { case output, error, terminal }

    /// The collected text of one output, and the tasks that wait for more.
    private final class Collected: Sendable {
        private struct State {
            var bytes: [UInt8] = []
            var isEnded = false
            var waiters: [(after: Int, text: [UInt8]?, CheckedContinuation<Int?, Never>)] = []
        }
        private let state = Mutex(State())

        var text: String { state.withLock { String(decoding: $0.bytes, as: UTF8.self) } }

        /// Appends bytes; nil marks the end of the output.
        func take(_ bytes: ArraySlice<UInt8>?) {
            state.withLock { state in
                if let bytes { state.bytes += bytes } else { state.isEnded = true }
                let waiters = state.waiters
                state.waiters = []
                for waiter in waiters { Self.serve(waiter, &state) }
            }
        }

        private static func serve(
            _ waiter: (after: Int, text: [UInt8]?, CheckedContinuation<Int?, Never>),
            _ state: inout State
        ) {
            if let text = waiter.text {
                var start = waiter.after
                while start + text.count <= state.bytes.count {
                    if state.bytes[start...].starts(with: text) {
                        waiter.2.resume(returning: start + text.count)
                        return
                    }
                    start += 1
                }
            }
            if state.isEnded { waiter.2.resume(returning: nil) } else { state.waiters.append(waiter) }
        }

        /// Waits for `text` after a position and returns the position behind it; a nil text waits for the end.
        func wait(for text: String?, after: Int) async -> Int? {
            await withCheckedContinuation { continuation in
                state.withLock { Self.serve((after, text.map { Array($0.utf8) }, continuation), &$0) }
            }
        }
    }

    package let id: Int32
    /// nil: closed, and the number may be that of another file by now.
    private let input: Mutex<Int32?>
    /// The test's side of the terminal; -1 without a terminal.
    private let terminal: Int32
    private let collected: [Stream: Collected]
    private let positions = Mutex<[Stream: Int]>([:])
    private let status: Status

    private final class Status: Sendable {
        private let state = Mutex<(code: Int32?, waiters: [CheckedContinuation<Int32, Never>])>((nil, []))

        var isSet: Bool { state.withLock { $0.code != nil } }

        func set(_ code: Int32) {
            state.withLock { state in
                state.code = code
                for waiter in state.waiters { waiter.resume(returning: code) }
                state.waiters = []
            }
        }

        var value: Int32 {
            get async {
                await withCheckedContinuation { continuation in
                    state.withLock { state in
                        if let code = state.code {
                            continuation.resume(returning: code)
                        } else {
                            state.waiters.append(continuation)
                        }
                    }
                }
            }
        }
    }

    /// The folder of the programs, which is the folder of the running tests.
    package static var programs: String {
        var path = [UInt8](repeating: 0, count: 4096)
        let count = path.withUnsafeMutableBytes { bytes in
            bytes.withMemoryRebound(to: CChar.self) {
                guard let base = $0.baseAddress else { return -1 }
                return readlink("/proc/self/exe", base, $0.count)
            }
        }
        let whole = path.prefix(max(0, count))
        return String(decoding: whole.prefix(upTo: whole.lastIndex(of: 0x2F) ?? 0), as: UTF8.self)
    }

    /// Starts a program of this package, or any program by its absolute path.
    ///
    /// - Parameters:
    ///   - program: the name or the absolute path.
    ///   - arguments: the arguments without the program name.
    ///   - text: the whole standard input; nil keeps it open for `type(_:)` without a terminal.
    ///   - hasTerminal: whether it has a controlling terminal; standard input, output and error are always pipes.
    ///   - columns: the width of the terminal; 0: unknown.
    ///   - rows: the height of the terminal.
    ///   - environment: the environment variables; those of the test are not inherited.
    /// - Throws: `StartError` or `Spawn.Failure` when the program cannot be started.
    package init(
        _ program: String,
        _ arguments: [String],
        input text: String? = "",
        hasTerminal: Bool = false,
        columns: UInt16 = 1000,
        rows: UInt16 = 24,
        environment: [String: String] = [:]
    ) throws {
        var (standard, output, error): ([Int32], [Int32], [Int32]) = ([-1, -1], [-1, -1], [-1, -1])
        guard pipe(&standard) == 0, pipe(&output) == 0, pipe(&error) == 0 else { throw StartError(text: "pipe") }
        for end in standard + output + error { clinux_set_cloexec(end) }
        var (master, slave): (Int32, Int32) = (-1, -1)
        var name = ""
        if hasTerminal {
            // ttyname is not thread-safe.
            var path = [CChar](repeating: 0, count: 128)
            var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
            guard openpty(&master, &slave, nil, nil, &size) == 0, ttyname_r(slave, &path, path.count) == 0 else {
                throw StartError(text: "no terminal")
            }
            for end in [master, slave] { clinux_set_cloexec(end) }
            name = String(decoding: path.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        let path = program.hasPrefix("/") ? program : Self.programs + "/" + program
        let settings = ["SWIFT_BACKTRACE": "enable=no", "PATH": "/usr/bin:/bin"]
        defer { for end in [standard[0], output[1], error[1]] + (slave >= 0 ? [slave] : []) { close(end) } }
        let id = try Spawn.start(
            [path] + arguments,
            descriptors: [0: standard[0], 1: output[1], 2: error[1]],
            // The first terminal that a session leader opens becomes its controlling terminal.
            files: hasTerminal ? [9: name] : [:],
            environment: settings.merging(environment) { $1 },
            hasSession: true
        )
        self.id = id
        input = Mutex(standard[1])
        terminal = master
        collected = [.output: Collected(), .error: Collected(), .terminal: Collected()]
        status = Status()
        collect(.output, output[0])
        collect(.error, error[0])
        if hasTerminal { collect(.terminal, master) } else { collected[.terminal]?.take(nil) }
        DispatchQueue(label: "wait").async { [status, id] in
            var code: Int32 = 0
            while waitpid(id, &code, 0) < 0, errno == EINTR {}
            // The exit code follows the convention of shells.
            status.set(code & 0x7F == 0 ? code >> 8 & 0xFF : 128 + code & 0x7F)
        }
        if let text {
            Self.write(text, to: standard[1])
            endInput()
        }
    }

    deinit {
        if !status.isSet { kill(id, SIGKILL) }
        endInput()
    }

    /// Kills the program when the test is cancelled at its time limit, which ends every wait.
    private func endingWhenCancelled<Result>(_ body: () async -> Result) async -> Result {
        await withTaskCancellationHandler {
            await body()
        } onCancel: {
            kill(id, SIGKILL)
        }
    }

    private func collect(_ stream: Stream, _ descriptor: Int32) {
        let collected = collected[stream]
        DispatchQueue(label: "collect").async {
            var chunk = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(descriptor, &chunk, chunk.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                collected?.take(chunk[..<count])
            }
            collected?.take(nil)
            if stream != .terminal { close(descriptor) }
        }
    }

    private static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// Types on the terminal, or writes to standard input when there is no terminal.
    package func type(_ text: String) {
        if terminal >= 0 { return Self.write(text, to: terminal) }
        input.withLock { if let input = $0 { Self.write(text, to: input) } }
    }

    /// Closes standard input, if it is open.
    package func endInput() {
        if let open = input.withLock({ $0.take() }) { close(open) }
    }

    package func signal(_ number: Int32) { kill(id, number) }

    /// Waits until the program has been stopped by a signal or has ended.
    package func stops() async {
        await endingWhenCancelled {
            await withCheckedContinuation { continuation in
                DispatchQueue(label: "stop").async { [id] in
                    var info = siginfo_t()
                    while waitid(P_PID, id_t(id), &info, WSTOPPED | WEXITED | WNOWAIT) != 0, errno == EINTR {}
                    continuation.resume()
                }
            }
        }
    }

    /// Waits for a text after the one of the previous call; returns false when the stream ends without it.
    package func prints(_ text: String, on stream: Stream = .terminal) async -> Bool {
        let position = positions.withLock { $0[stream] ?? 0 }
        let end = await endingWhenCancelled { await collected[stream]?.wait(for: text, after: position) }
        guard let end else { return false }
        positions.withLock { $0[stream] = end }
        return true
    }

    /// Waits for a text on the terminal, and then types the answer to it.
    package func prints(_ text: String, typing answer: String) async -> Bool {
        let isThere = await prints(text)
        if isThere { type(answer) }
        return isThere
    }

    /// Returns the output so far. After `exitCode` the output is complete.
    package func text(_ stream: Stream) -> String { collected[stream]?.text ?? "" }

    /// The text on the terminal so far, with the line ends of files.
    package var dialogue: String {
        text(.terminal).split(separator: "\r\n", omittingEmptySubsequences: false).joined(separator: "\n")
    }

    /// The text of all outputs.
    package var everything: String { text(.output) + text(.error) + text(.terminal) }

    /// Whether its terminal shows what is typed.
    package var echoes: Bool {
        var settings = termios()
        return tcgetattr(terminal, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    /// Waits for the end of the program and of its output. The exit code of a signal is 128 plus its number.
    package var exitCode: Int32 {
        get async {
            await endingWhenCancelled {
                _ = await collected[.output]?.wait(for: nil, after: 0)
                _ = await collected[.error]?.wait(for: nil, after: 0)
                _ = await collected[.terminal]?.wait(for: nil, after: 0)
                return await status.value
            }
        }
    }

    /// Sends a signal and waits for the end.
    package func exitCode(after number: Int32) async -> Int32 {
        signal(number)
        return await exitCode
    }
}
