// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import CTestSupport
package import Concurrency
import Glibc
import Server
package import Text

/// A client in the test process with non-blocking input and output.
@Loop package final class TestClient {
    private let socket: Int32
    private var registration: Loop.Registration?
    /// The received lines.
    package private(set) var lines: [[UInt8]] = []
    /// The number of lines that `next` has returned.
    private var taken = 0
    private var partial: [UInt8] = []
    private let changes = Changes()
    private var markers = 0
    package private(set) var isClosed = false
    /// Whether the client reads; false simulates a client that never reads.
    package var isReading = true { didSet { updateInterest() } }
    /// Whether the buffer of the socket was full at the last attempt to send.
    private var isFull = false { didSet { updateInterest() } }

    package init(socket: Int32) throws {
        ctestsupport_link()
        self.socket = socket
        registration = try Loop.watch(socket, .read) { [weak self] events in self?.ready(events) }
    }

    private func updateInterest() {
        var interest: Loop.Interest = isReading ? .read : []
        if isFull { interest.insert(.write) }
        registration?.change(interest)
    }

    private func ready(_ events: UInt32) {
        if events & Loop.writable != 0 {
            isFull = false
            changes.notify()
        }
        if events & ~Loop.writable != 0 { readable() }
    }

    isolated deinit { close() }

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        registration?.cancel()
        Glibc.close(socket)
        changes.notify()
    }

    /// Closes the writing side only.
    package func finish() {
        guard !isClosed else { return }
        shutdown(socket, Int32(SHUT_WR))
    }

    private func readable() {
        // A registration reports hang-ups even without interest in reading.
        let count = isReading ? recv(socket, &Self.chunk, Self.chunk.count, 0) : 0
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0 else { return close() }
        Self.chunk.withUnsafeBytes { chunk in
            var rest = UnsafeRawBufferPointer(rebasing: chunk[..<count])
            // memchr, because a loop in an unoptimized build takes seconds for the longest lines.
            while let start = rest.baseAddress, let end = memchr(start, 0x0A, rest.count) {
                let length = start.distance(to: end)
                lines.append(partial + rest[..<length])
                partial = []
                rest = UnsafeRawBufferPointer(rebasing: rest[(length + 1)...])
            }
            partial += rest
        }
        changes.notify()
    }

    /// The read buffer, which all clients share.
    private static var chunk = [UInt8](repeating: 0, count: 65_536)

    private static func message(_ line: [UInt8]) -> JSON {
        (try? JSON(line)) ?? .string("not JSON: " + String(decoding: line, as: UTF8.self))
    }

    /// All received messages in order.
    package var transcript: [JSON] { lines.map(Self.message) }

    /// Returns whether any received message contains this text.
    package func hasReceived(_ text: String) -> Bool {
        lines.contains { line in
            (line + [0]).withUnsafeBytes { raw in
                raw.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { strstr($0, text) != nil } ?? false }
            }
        }
    }

    /// The number of received messages.
    package var count: Int { lines.count }

    /// Sends raw bytes; waits while the socket's buffer is full.
    package func send(bytes: [UInt8]) async {
        var rest = bytes[...]
        while !rest.isEmpty, !isClosed, !Task.isCancelled {
            if trySend(&rest) { continue }
            isFull = true
            await changes.wait { !isFull || isClosed }
        }
    }

    /// Sends what the socket accepts at once and removes it from `bytes`; returns false when nothing was sent.
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

    /// Waits until `condition` holds, or the connection or the test has ended. A wait of a minute prints what was
    /// received, so that the output of a test that hangs says why.
    package func wait(until condition: () -> Bool) async {
        let alarm = Loop.Alarm { [weak self] in self?.complain() }
        alarm.set(after: 60_000)
        defer { alarm.cancel() }
        await changes.wait { condition() || isClosed }
    }

    private func complain() {
        let received = lines.suffix(12).map { String(decoding: $0.prefix(300), as: UTF8.self) }
        print("A client has waited for a minute after:", received.joined(separator: "\n  "))
    }

    /// Returns the next message; nil when the server has closed the connection.
    package func next() async -> JSON? {
        await wait { taken < lines.count }
        guard taken < lines.count else { return nil }
        taken += 1
        return Self.message(lines[taken - 1])
    }

    /// Returns the next message of one of these kinds and skips others before it.
    package func next(_ kinds: String...) async -> JSON? { await next(kinds) }

    private func next(_ kinds: [String]) async -> JSON? {
        while let message = await next() {
            if let kind = message["msg"]?.string, kinds.contains(kind) { return message }
        }
        return nil
    }

    /// Sends a command and returns the next message of one of these kinds.
    package func ask(_ line: String, _ kinds: String...) async -> JSON? {
        await send(line)
        return await next(kinds)
    }

    /// Sends a command with a `request` and returns its direct answer without that member. Events of the same kind
    /// before it are skipped.
    package func answer(to line: String) async -> JSON? {
        markers += 1
        let marker = "marker \(markers)"
        await send(line.dropLast() + #","request":"\#(marker)"}"#)
        while let message = await next() {
            guard message["request"] == .string(marker), let members = message.members else { continue }
            return .object(members.filter { $0.key != "request" })
        }
        return nil
    }

    /// Sends lines in one write and returns all messages until the direct answers are complete. The result includes
    /// unread older messages and events in between.
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
