// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import TestSupport

/// Runs the program badged-virtual-card, reads its stdout and plays vpcd. Each wait has a limit of four minutes.
final class VPCDProgram {
    private let listener: Int32
    private var connection: Int32 = -1
    private let output: Int32
    private var unread: [UInt8] = []
    private let process: pid_t

    init(_ arguments: String...) throws {
        let (listener, port) = try LoopbackSocket.listen(backlog: 1)
        self.listener = listener
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw Unexpected("no pipe") }
        output = ends[0]
        process = try Self.spawn(["--vpcd", "127.0.0.1:\(port)"] + arguments, output: ends[1])
        close(ends[1])
    }

    /// Starts badged-virtual-card or `program`, and returns the process id.
    static func spawn(_ arguments: [String], output: Int32, program: String? = nil) throws -> pid_t {
        try Spawn.start([program ?? path()] + arguments, descriptors: [1: output], files: [2: "/dev/null"])
    }

    /// The program is in the directory of the test bundle.
    private static func path() throws -> String {
        guard let bundle = CommandLine.arguments.first(where: { $0.contains(".xctest") }),
            let slash = bundle.lastIndex(of: "/")
        else { throw Unexpected("no test bundle in the arguments \(CommandLine.arguments)") }
        return bundle[...slash] + "badged-virtual-card"
    }

    deinit {
        kill(process, SIGKILL)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        for descriptor in [listener, connection, output] where descriptor >= 0 { close(descriptor) }
    }

    private static func wait(_ descriptor: Int32) throws {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&request, 1, 240_000) == 1 else { throw Unexpected("no data within four minutes") }
    }

    /// Accepts the connection of the card.
    func accept() throws {
        try Self.wait(listener)
        connection = Glibc.accept(listener, nil, nil)
    }

    /// Closes the connection, as vpcd does at its end.
    func drop() {
        close(connection)
        connection = -1
    }

    /// The next line of stdout; nil at end of file.
    func line() throws -> String? {
        while true {
            if let end = unread.firstIndex(of: 0x0A) {
                defer { unread.removeFirst(end + 1) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            try Self.wait(output)
            var part = [UInt8](repeating: 0, count: 4096)
            let count = read(output, &part, part.count)
            guard count > 0 else { return nil }
            unread += part.prefix(count)
        }
    }

    func tell(_ digits: String) {
        let payload = hex(digits)
        let message = [UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)] + payload
        _ = send(connection, message, message.count, Int32(MSG_NOSIGNAL))
    }

    /// Sends a command again and again, without waiting for the answers, until an answer is there or `limit` bytes were
    /// sent. Returns the number of bytes.
    func flood(_ digits: String, upTo limit: Int) throws -> Int {
        let payload = hex(digits)
        let message = [UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)] + payload
        let piece = Array(repeatElement(message, count: 10_000).joined())
        var (sent, rest) = (0, piece[...])
        while sent < limit {
            var request = pollfd(fd: connection, events: Int16(POLLIN | POLLOUT), revents: 0)
            guard poll(&request, 1, 240_000) == 1 else { throw Unexpected("no answer within four minutes") }
            if Int32(request.revents) & POLLIN != 0 { break }
            let count = rest.withUnsafeBytes {
                send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            guard count > 0 else { continue }
            sent += count
            rest = rest.dropFirst(count)
            if rest.isEmpty { rest = piece[...] }
        }
        return sent
    }

    func ask(_ digits: String) throws -> String {
        tell(digits)
        return try answer()
    }

    /// The next answer of the card.
    func answer() throws -> String {
        guard let length = try receive(2), let answer = try receive(Int(length[0]) << 8 | Int(length[1])) else {
            throw Unexpected("the card closed the connection")
        }
        return hex(answer)
    }

    /// Returns whether the card has closed the connection.
    func hasLeft() throws -> Bool { try receive(1) == nil }

    /// Returns whether the connection is open and holds no unread data.
    func isSilent() -> Bool {
        var byte: UInt8 = 0
        return recv(connection, &byte, 1, Int32(MSG_DONTWAIT)) < 0 && errno == EAGAIN
    }

    private func receive(_ count: Int) throws -> [UInt8]? {
        var bytes: [UInt8] = []
        while bytes.count < count {
            try Self.wait(connection)
            var part = [UInt8](repeating: 0, count: count - bytes.count)
            let received = recv(connection, &part, part.count, 0)
            guard received > 0 else { return nil }
            bytes += part.prefix(received)
        }
        return bytes
    }

    func signal(_ number: Int32) { kill(process, number) }

    /// Waits for the end of the process; returns the exit status, or the negative signal number. After four minutes it
    /// kills the process.
    static func status(of process: pid_t) -> Int32 {
        let guardian = DispatchWorkItem { kill(process, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + 240, execute: guardian)
        // The process id stays valid until waitpid, so the guardian cannot hit another process.
        var info = siginfo_t()
        while waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        guardian.cancel()
        var status: Int32 = 0
        waitpid(process, &status, 0)
        return status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
    }

    func exitStatus() -> Int32 { Self.status(of: process) }
}
