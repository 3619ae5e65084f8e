// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CTestSupport
package import Concurrency
import Glibc
package import Text
import Wire

/// A client in the test's own process: a line goes out, messages come in, nothing blocks a thread.
@Loop package final class TestClient {
    private let socket: Int32
    private var registration: Loop.Registration?
    /// All lines that came.
    package private(set) var lines: [[UInt8]] = []
    /// How many of them `next` has given out.
    private var taken = 0
    private var partial: [UInt8] = []
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private var markers = 0
    package private(set) var isClosed = false
    /// Stop reading, to play a client that never reads.
    package var isReading = true { didSet { registration?.change(isReading ? .read : []) } }

    package init(socket: Int32) throws {
        ctestsupport_link()
        self.socket = socket
        registration = try Loop.watch(socket, .read) { [weak self] _ in self?.readable() }
    }

    isolated deinit { close() }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        registration?.cancel()
        Glibc.close(socket)
        wake()
    }

    /// Ends the writing side alone.
    package func finish() {
        guard !isClosed else { return }
        shutdown(socket, Int32(SHUT_WR))
    }

    private func readable() {
        // A registration reports hang-ups even when nobody wants to read.
        let count = isReading ? recv(socket, &Self.chunk, Self.chunk.count, 0) : 0
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0 else { return close() }
        Self.chunk.withUnsafeBytes { chunk in
            var rest = UnsafeRawBufferPointer(rebasing: chunk[..<count])
            // memchr, as what is not optimized takes seconds for the longest of the tests' lines.
            while let start = rest.baseAddress, let end = memchr(start, 0x0A, rest.count) {
                let length = start.distance(to: end)
                lines.append(partial + rest[..<length])
                partial = []
                rest = UnsafeRawBufferPointer(rebasing: rest[(length + 1)...])
            }
            partial += rest
        }
        wake()
    }

    /// What a client reads at once, the same place for all.
    private static var chunk = [UInt8](repeating: 0, count: 65_536)

    private func wake() {
        let all = waiters
        waiters = []
        for waiter in all { waiter.resume() }
    }

    private static func message(_ line: [UInt8]) -> JSON {
        (try? JSON(line)) ?? .string("not JSON: " + String(decoding: line, as: UTF8.self))
    }

    /// All messages in the order they came.
    package var transcript: [JSON] { lines.map(Self.message) }

    /// Whether a message had this text in it, anywhere.
    package func hasHeard(_ text: String) -> Bool {
        lines.contains { line in
            (line + [0]).withUnsafeBytes { raw in
                raw.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { strstr($0, text) != nil } ?? false }
            }
        }
    }

    /// How many messages have come.
    package var count: Int { lines.count }

    /// Sends raw bytes; small enough for the socket's buffer, or the server reads on.
    package func send(bytes: [UInt8]) async {
        var rest = bytes[...]
        while !rest.isEmpty, !isClosed {
            if trySend(&rest) == false { await Task.yield() }
        }
    }

    /// Sends what the socket takes at once and cuts it off; false when that is nothing.
    package func trySend(_ bytes: inout ArraySlice<UInt8>) -> Bool {
        let count = bytes.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        if count > 0 { bytes = bytes.dropFirst(count) }
        return count > 0
    }

    /// Sends lines in one write.
    package func send(_ lines: String...) async { await send(lines) }

    /// Sends lines in one write.
    package func send(_ lines: [String]) async {
        await send(bytes: Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    /// Returns when `condition` holds or can never hold: the connection or the test has ended.
    package func wait(until condition: () -> Bool) async {
        while !condition(), !isClosed, !Task.isCancelled {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    if Task.isCancelled { continuation.resume() } else { waiters.append(continuation) }
                }
            } onCancel: {
                Task { @Loop in self.wake() }
            }
        }
    }

    /// The next message, nil when the server has closed the connection.
    package func next() async -> JSON? {
        await wait { taken < lines.count }
        guard taken < lines.count else { return nil }
        taken += 1
        return Self.message(lines[taken - 1])
    }

    /// The next message of one of these kinds; others before it are passed over.
    package func next(_ kinds: String...) async -> JSON? { await next(kinds) }

    private func next(_ kinds: [String]) async -> JSON? {
        while let message = await next() {
            if let kind = message["msg"]?.string, kinds.contains(kind) { return message }
        }
        return nil
    }

    /// Sends a command and gives the next message of a kind.
    package func ask(_ line: String, _ kinds: String...) async -> JSON? {
        await send(line)
        return await next(kinds)
    }

    /// Sends lines in one write and gives what came until everything before was answered: unread older messages, the
    /// direct answers, and what else was said meanwhile.
    package func exchange(_ lines: String...) async -> [JSON] { await exchange(lines) }

    package func exchange(_ lines: [String]) async -> [JSON] {
        markers += 1
        let marker = "marker \(markers)"
        await send(lines + [#"{"cmd":"GET_API_LEVEL","request":"\#(marker)"}"#])
        var messages: [JSON] = []
        while let message = await next(), message["request"] != .string(marker) { messages.append(message) }
        return messages
    }
}
