// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Host
import Synchronization
import Text

/// Reads lines, which may be secrets, from a terminal or standard input. A read can be cancelled.
final class LineSource: Sendable {
    enum Line {
        case text(SecretBox)
        case tooLong
        case ended
        case cancelled
    }

    /// Longer than any secret: 24 words with their numbers.
    private static let limit = 512

    private struct State {
        var lastRead = 0
        /// Reads up to this number are cancelled.
        var cancelled = 0
    }

    /// Unchecked: used on `queue` only.
    private final class Buffer: @unchecked Sendable {
        let lines = LineBuffer(limit: LineSource.limit)
        var isEnded = false
    }

    private let descriptor: Int32
    private let wake: (read: Int32, write: Int32)
    private let state = Mutex(State())
    private let buffer = Buffer()
    // Reads block, so they have a thread of their own.
    private let queue = DispatchQueue(label: "lines")

    /// Reads from an open descriptor, which stays open.
    init?(_ descriptor: Int32) {
        var pair: [Int32] = [-1, -1]
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        guard socketpair(AF_UNIX, Int32(type), 0, &pair) == 0 else { return nil }
        self.descriptor = descriptor
        wake = (pair[0], pair[1])
    }

    deinit {
        close(wake.read)
        close(wake.write)
    }

    /// Reads the next line, without its end. Cancelling the task cancels the read.
    ///
    /// - Parameters:
    ///   - begin: called before the read, for example to ask the question. Its argument says whether the line is still
    ///     wanted.
    ///   - end: called after the read and before the next one, with true if there is a line.
    /// - Returns: the line, or why there is none.
    func next(
        begin: @escaping @Sendable (_ isWanted: @escaping @Sendable () -> Bool) -> Void = { _ in },
        end: @escaping @Sendable (_ hasLine: Bool) -> Void = { _ in }
    ) async -> Line {
        let number = state.withLock { state in
            state.lastRead += 1
            return state.lastRead
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async {
                    guard !self.isCancelled(number) else { return continuation.resume(returning: .cancelled) }
                    begin { !self.isCancelled(number) }
                    let line = self.read(number)
                    switch line {
                    case .text, .tooLong: end(true)
                    case .ended, .cancelled: end(false)
                    }
                    continuation.resume(returning: line)
                }
            }
        } onCancel: {
            cancel(number)
        }
    }

    /// Drops what was typed at the terminal. An unfinished line is dropped to its end: this waits until the user
    /// presses Return. Cancelling the task ends the wait.
    func dropTyped() async {
        let number = state.withLock { state in
            state.lastRead += 1
            return state.lastRead
        }
        cancel(number - 1)
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // After the read that was cancelled just now.
                queue.async {
                    Console.showUnfinishedLine()
                    if self.isUnfinished() {
                        Console.say(tr("Press Return: badgectl discards what you have typed."), on: self.descriptor)
                        while !self.isCancelled(number), self.readTyped(timeout: -1) == .unfinished {}
                    }
                    continuation.resume()
                }
            }
        } onCancel: {
            cancel(number)
        }
    }

    private enum Typed { case nothing, unfinished, lineEnd }

    /// Reads all that was typed. Returns whether the last line has no end.
    private func isUnfinished() -> Bool {
        var last = Typed.nothing
        while true {
            let typed = readTyped(timeout: 0)
            if typed == .nothing { return last == .unfinished }
            last = typed
        }
    }

    /// Reads typed characters and wipes them. `timeout` is in milliseconds, -1 for none; a cancelled read ends the
    /// wait.
    private func readTyped(timeout: Int32) -> Typed {
        guard hasInput(timeout: timeout) else { return timeout == 0 ? .nothing : .unfinished }
        var count = 0
        let typed = Secret(count: 256) { count = Glibc.read(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return .nothing }
        // 4 is Ctrl-D, with which the user ends the input.
        let ends = [UInt8(ascii: "\n"), UInt8(ascii: "\r"), 4]
        return typed.withBytes { ends.contains($0[count - 1]) } ? .lineEnd : .unfinished
    }

    private func cancel(_ number: Int) {
        state.withLock { $0.cancelled = max($0.cancelled, number) }
        var byte: UInt8 = 0
        _ = write(wake.write, &byte, 1)
    }

    private func isCancelled(_ number: Int) -> Bool { state.withLock { number <= $0.cancelled } }

    private func read(_ number: Int) -> Line {
        while true {
            if isCancelled(number) { return .cancelled }
            // The next read may be hours away, and the line may be a PIN.
            defer { buffer.lines.wipeReturned() }
            switch buffer.lines.next() {
            case .text(let text): return .text(SecretBox(Secret(text)))
            case .tooLong: return .tooLong
            case nil: break
            }
            if buffer.isEnded { return .ended }
            if hasInput(timeout: -1) { fill() }
        }
    }

    /// Waits until there is input, a read is cancelled, or the time is over. Returns whether there is input.
    private func hasInput(timeout: Int32) -> Bool {
        var polls = [
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: wake.read, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&polls, timeout == 0 ? 1 : 2, timeout) > 0 else { return false }
        if polls[1].revents != 0 {
            var byte: UInt8 = 0
            _ = Glibc.read(wake.read, &byte, 1)
        }
        return polls[0].revents != 0
    }

    private func fill() {
        let count = buffer.lines.fill { Glibc.read(descriptor, $0.baseAddress, $0.count) }
        if count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN)) { return }
        // The end of the last line may be missing.
        if !buffer.lines.isEmpty {
            _ = buffer.lines.fill {
                $0[0] = UInt8(ascii: "\n")
                return 1
            }
        }
        buffer.isEnded = true
    }
}
