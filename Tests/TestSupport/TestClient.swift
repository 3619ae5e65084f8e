// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
package import Loop
package import Wire

/// A client in the test's own process: a line goes out, messages come in, nothing blocks a thread.
@Loop package final class TestClient {
    private let socket: Int32
    private var registration: Loop.Registration?
    private var lines: [JSON] = []
    private var partial: [UInt8] = []
    private var waiter: CheckedContinuation<Void, Never>?
    package private(set) var isClosed = false
    /// All messages in the order they came.
    package private(set) var transcript: [JSON] = []
    /// Stop reading, to play a client that never reads.
    package var isReading = true { didSet { registration?.change(isReading ? .read : []) } }

    package init(socket: Int32) throws {
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
    package func finish() { shutdown(socket, Int32(SHUT_WR)) }

    private func readable() {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(socket, &chunk, chunk.count, 0)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        guard count > 0 else { return close() }
        partial += chunk[..<count]
        while let end = partial.firstIndex(of: 0x0A) {
            do {
                let json = try JSON(partial[..<end])
                lines.append(json)
                transcript.append(json)
            } catch {
                lines.append(.string("not JSON: " + String(decoding: partial[..<end], as: UTF8.self)))
            }
            partial.removeFirst(end + 1)
        }
        wake()
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }

    /// Sends raw bytes; small enough for the socket's buffer, or the server reads on.
    package func send(bytes: [UInt8]) async {
        var sent = 0
        while sent < bytes.count, !isClosed {
            let count = bytes.withUnsafeBytes { raw in
                Glibc.send(socket, raw.baseAddress.map { $0 + sent }, raw.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count > 0 { sent += count } else { await Task.yield() }
        }
    }

    /// Sends lines in one write.
    package func send(_ lines: String...) async {
        await send(bytes: Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    /// The next message, nil when the server has closed the connection.
    package func next() async -> JSON? {
        while lines.isEmpty, !isClosed {
            await withCheckedContinuation { waiter = $0 }
        }
        return lines.isEmpty ? nil : lines.removeFirst()
    }

    /// The next message of one of these kinds; others before it are passed over.
    package func next(_ kinds: String...) async -> JSON? {
        while let message = await next() {
            if let kind = message["msg"]?.string, kinds.contains(kind) { return message }
        }
        return nil
    }

    /// Sends a command and gives the next message of a kind.
    package func ask(_ line: String, _ kinds: String...) async -> JSON? {
        await send(line)
        while let message = await next() {
            if let kind = message["msg"]?.string, kinds.contains(kind) { return message }
        }
        return nil
    }
}
