// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// A blocking client with one buffer and no allocation per message, so that most of the measured time is the server's.
final class Client {
    let socket: Int32
    private let buffer: UnsafeMutableRawBufferPointer
    private var start = 0
    private var end = 0

    /// Seconds without an answer after which the bench fails.
    static let timeout = 60

    /// Connects; nil when no program listens there yet.
    init?(_ path: String) throws(BenchError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let fits = withUnsafeMutableBytes(of: &address.sun_path) { raw in
            guard path.utf8.count < raw.count else { return false }
            raw.copyBytes(from: path.utf8)
            return true
        }
        guard fits else { throw BenchError("the path of the socket is too long: \(path)") }
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw BenchError(call: "socket") }
        let connected = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(socket, pointer, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard connected == 0 else {
            let code = errno
            close(socket)
            guard code == ENOENT || code == ECONNREFUSED else {
                errno = code
                throw BenchError(call: "connect \(path)")
            }
            return nil
        }
        var limit = timeval(tv_sec: Self.timeout, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        self.socket = socket
        buffer = .allocate(byteCount: 1 << 17, alignment: 16)
    }

    deinit {
        close(socket)
        buffer.deallocate()
    }

    /// Connects to a daemon that is known to listen.
    static func connected(to path: String) throws(BenchError) -> Client {
        guard let client = try Client(path) else { throw BenchError("nobody listens at \(path)") }
        return client
    }

    /// Sends the line and its end in one write.
    func send(_ line: String) throws(BenchError) {
        var line = line
        line.append("\n")
        let sent = line.withUTF8 { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard sent == line.utf8.count else { throw BenchError(call: "send") }
    }

    /// The next line without its end; valid until the next call.
    func receive() throws(BenchError) -> Line {
        var searched = start
        while true {
            if let base = buffer.baseAddress, let found = memchr(base + searched, 0x0A, end - searched) {
                let stop = UnsafeRawPointer(found) - UnsafeRawPointer(base)
                let line = Line(bytes: UnsafeRawBufferPointer(rebasing: buffer[start..<stop]))
                start = stop + 1
                return line
            }
            try fill()
            searched = start
        }
    }

    private func fill() throws(BenchError) {
        if start == end {
            (start, end) = (0, 0)
        } else if end == buffer.count {
            guard start > 0 else { throw BenchError("a line is too long") }
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<end]))
            (start, end) = (0, end - start)
        }
        let count = recv(socket, buffer.baseAddress.map { $0 + end }, buffer.count - end, 0)
        guard count > 0 else {
            throw count == 0 ? BenchError("the server closed the connection") : BenchError(call: "no answer: recv")
        }
        end += count
    }

    /// Whether a whole line is in the buffer, so that `receive` does not wait.
    var hasLine: Bool { buffer[start..<end].contains(0x0A) }

    /// Waits for a message of this name; earlier messages are dropped.
    @discardableResult
    func wait(for message: StaticString) throws(BenchError) -> Line {
        while true {
            let line = try receive()
            if line.isMessage(message) { return line }
        }
    }

    /// Receives this many lines.
    func count(lines count: Int) throws(BenchError) {
        var missing = count
        while missing > 0 {
            if start == end { try fill() }
            for byte in buffer[start..<end] where byte == 0x0A { missing -= 1 }
            start = end
        }
    }
}

/// One message in the client's buffer.
struct Line {
    let bytes: UnsafeRawBufferPointer

    var text: String { String(decoding: bytes, as: UTF8.self) }

    func isMessage(_ name: StaticString) -> Bool {
        guard let at = find("\"msg\":\"") else { return false }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[at...])
        let size = name.utf8CodeUnitCount
        guard rest.count > size, rest[size] == 0x22, let base = rest.baseAddress else { return false }
        return memcmp(base, name.utf8Start, size) == 0
    }

    func contains(_ needle: StaticString) -> Bool { find(needle) != nil }

    /// The offset behind the first occurrence.
    private func find(_ needle: StaticString) -> Int? {
        let size = needle.utf8CodeUnitCount
        guard size > 0, bytes.count >= size, let base = bytes.baseAddress else { return nil }
        var at = 0
        while at <= bytes.count - size {
            guard let hit = memchr(base + at, Int32(needle.utf8Start.pointee), bytes.count - size + 1 - at) else {
                return nil
            }
            at = UnsafeRawPointer(hit) - base
            if memcmp(base + at, needle.utf8Start, size) == 0 { return at + size }
            at += 1
        }
        return nil
    }
}

/// Connects a blocking socket to a port of 127.0.0.1; nil, with `errno`, when no program listens there.
func connectLoopback(_ port: UInt16) -> Int32? {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
    guard result == 0 else {
        let code = errno
        close(socket)
        errno = code
        return nil
    }
    return socket
}
