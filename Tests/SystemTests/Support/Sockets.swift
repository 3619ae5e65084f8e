// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport

/// A blocking stream socket for the fake cards and readers.
struct Stream: Sendable {
    let fd: Int32

    /// Reads `count` bytes; returns nil at the end of the stream.
    func read(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let n = bytes.withUnsafeMutableBytes { Glibc.recv(fd, $0.baseAddress?.advanced(by: done), count - done, 0) }
            if n < 0, errno == EINTR { continue }
            guard n > 0 else { return nil }
            done += n
        }
        return bytes
    }

    @discardableResult
    func write(_ bytes: [UInt8]) -> Bool {
        var done = 0
        while done < bytes.count {
            let n = bytes.withUnsafeBytes {
                Glibc.send(fd, $0.baseAddress?.advanced(by: done), bytes.count - done, Int32(MSG_NOSIGNAL))
            }
            if n < 0, errno == EINTR { continue }
            guard n > 0 else { return false }
            done += n
        }
        return true
    }

    /// Ends pending reads. The descriptor stays open until `close`.
    func hangUp() { shutdown(fd, Int32(SHUT_RDWR)) }
    func close() { Glibc.close(fd) }

    /// Waits for data from the peer and closes the connection without reading the data.
    func hangUpUnread() {
        var byte: UInt8 = 0
        _ = recv(fd, &byte, 1, Int32(MSG_PEEK))
        close()
    }

    /// Connects to a local TCP port.
    static func connect(port: UInt16) -> Stream? {
        (try? LoopbackSocket.connect(port: port)).map { Stream(fd: $0) }
    }
}

/// A Unix socket that calls `serve` on a new thread for each connection.
final class UnixListener: Sendable {
    private let fd: Int32
    let path: String

    init?(_ path: String, serve: @escaping @Sendable (Stream) -> Void) {
        self.path = path
        fd = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8).prefix($0.count - 1)) }
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(fd, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard code == 0, listen(fd, 8) == 0 else { return nil }
        thread { [fd] in
            while true {
                let client = accept(fd, nil, nil)
                guard client >= 0 else { return }
                thread { serve(Stream(fd: client)) }
            }
        }
    }

    deinit { end() }

    /// Stops accepting connections. The socket file stays, as after SIGKILL of a server.
    func end() { shutdown(fd, Int32(SHUT_RDWR)) }
}

/// Runs `body` on a new thread.
func thread(_ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    let box = Unmanaged.passRetained(Box(body)).toOpaque()
    pthread_create(
        &thread,
        nil,
        { raw in
            raw.map { Unmanaged<Box>.fromOpaque($0).takeRetainedValue() }?.body()
            return nil
        },
        box
    )
    pthread_detach(thread)
}
