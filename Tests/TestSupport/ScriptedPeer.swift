// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Glibc
import Server
import Synchronization
package import Text

/// A fake of badged that serves one client after the other on a temporary socket. The script receives and sends lines
/// on a separate thread. Deinit ends the fake.
package final class ScriptedPeer: Sendable {
    /// The server's end of one connection.
    package final class Connection {
        private let socket: Int32
        private let buffer = LineBuffer()
        /// The received lines, unchanged.
        package private(set) var received: [String] = []

        private let answersPings: Bool

        fileprivate init(_ socket: Int32, answersPings: Bool) {
            (self.socket, self.answersPings) = (socket, answersPings)
        }

        /// Returns the next line; nil when the client has closed or has sent nothing for a minute.
        package func line() -> String? {
            while true {
                switch buffer.next() {
                case .text(let text):
                    let line = String(decoding: text, as: UTF8.self)
                    if answersPings, answersPing(line) { continue }
                    received.append(line)
                    return line
                case .tooLong:
                    received.append("too long")
                    return "too long"
                case nil: break
                }
                var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
                guard poll(&waiting, 1, 240_000) == 1 else { return nil }
                guard buffer.fill({ recv(socket, $0.baseAddress, $0.count, 0) }) > 0 else { return nil }
            }
        }

        /// Answers a ping, which the client sends when the peer is silent; returns false for other lines.
        private func answersPing(_ line: String) -> Bool {
            guard line.contains("badged-client-ping"), let question = try? JSON(line.utf8) else { return false }
            send(#"{"available":[1,2,3],"current":3,"msg":"API_LEVEL"}"#, answering: question)
            return true
        }

        /// Returns the next command; nil at the end or when the line is not JSON.
        package func command() -> JSON? { line().flatMap { try? JSON($0.utf8) } }

        /// Reads lines until the command of this name.
        @discardableResult
        package func command(_ name: String) -> JSON? {
            while let line = line() {
                if let command = try? JSON(line.utf8), command["cmd"]?.string == name { return command }
            }
            return nil
        }

        /// Waits for the command of this name and answers it.
        @discardableResult
        package func answer(_ name: String, _ message: String) -> JSON? {
            let command = command(name)
            if let command { send(message, answering: command) }
            return command
        }

        /// Sends one message with the `request` of `command`.
        package func send(_ message: String, answering command: JSON? = nil) {
            guard let request = command?["request"], message.hasSuffix("}") else { return send(raw: message + "\n") }
            let text = String(decoding: request.bytes, as: UTF8.self)
            send(raw: message.dropLast() + ",\"request\":\(text)}\n")
        }

        package func send(raw text: some StringProtocol) { send(bytes: Array(text.utf8)) }

        package func send(bytes: [UInt8]) { BlockingSocket.send(bytes, to: socket) }

        /// Closes, as the end of badged does.
        package func hangUp() { shutdown(socket, Int32(SHUT_RDWR)) }

        /// Waits until the client has closed.
        package func untilClosed() { while line() != nil {} }
    }

    package let path: String
    private let listener: SharedDescriptor
    private let lines = Mutex<[String]>([])
    private let done = DispatchGroup()
    /// The socket of the connection that is served; -1: none.
    private let current = Mutex<Int32>(-1)

    /// Starts the peer.
    /// - Parameters:
    ///   - answersPings: whether pings of the client library are answered, and hidden from the scripts.
    ///   - script: the script of the first connection, which stays open until the client closes, or `hangUp`.
    ///   - others: the script of each later connection.
    /// - Throws: `SystemError` when the socket cannot be created.
    package init(
        answersPings: Bool = true,
        _ script: @escaping @Sendable (Connection) -> Void,
        others: (@Sendable (Connection) -> Void)? = nil
    ) throws {
        path = UnixSocket.temporaryPath
        listener = SharedDescriptor(try UnixSocket.listen(on: path))
        let (listener, lines) = (listener, { @Sendable [weak self] in self?.note($0) } as @Sendable ([String]) -> Void)
        let serve = { @Sendable [weak self] in self?.serve($0) } as @Sendable (Int32) -> Void
        done.enter()
        let done = done
        DispatchQueue(label: "scripted peer").async {
            defer { done.leave() }
            var play = script
            while true {
                let socket = clinux_accept(listener.number)
                guard socket >= 0 else { return }
                _ = fcntl(socket, F_SETFL, 0)
                let connection = Connection(socket, answersPings: answersPings)
                serve(socket)
                play(connection)
                connection.untilClosed()
                serve(-1)
                lines(connection.received)
                Glibc.close(socket)
                guard let others else { return }
                play = others
            }
        }
    }

    deinit {
        listener.shutDown()
        unlink(path)
    }

    private func serve(_ socket: Int32) { current.withLock { $0 = socket } }

    /// Closes the connection that is served, as the end of badged does.
    package func close() { current.withLock { if $0 >= 0 { shutdown($0, Int32(SHUT_RDWR)) } } }

    private func note(_ received: [String]) { lines.withLock { $0 += received } }

    /// Waits for the end of the scripts and returns the lines of all connections.
    package func received() async -> [String] {
        await withCheckedContinuation { continuation in
            done.notify(queue: .global()) { continuation.resume() }
        }
        return lines.withLock { $0 }
    }

    /// Waits for the end of the scripts and returns the names of the received commands.
    package func commands() async -> [String] {
        await received().map { (try? JSON($0.utf8))?["cmd"]?.string ?? $0 }
    }

    /// Waits for the end of the scripts and returns the names of the received commands with their values.
    package func commandsWithValues() async -> [String] {
        await received().compactMap { line in
            guard let json = try? JSON(line.utf8), let name = json["cmd"]?.string else { return nil }
            return name + (json["value"]?.string.map { " \($0)" } ?? "")
        }
    }
}
