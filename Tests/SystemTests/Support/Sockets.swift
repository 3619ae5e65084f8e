// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport

/// A blocking stream socket for the fake cards and readers.
struct Stream: Sendable {
    let fd: Int32

    /// Reads `count` bytes; returns nil at the end of the stream.
    func read(_ count: Int) -> [UInt8]? { BlockingSocket.receive(count, from: fd) }

    @discardableResult
    func write(_ bytes: [UInt8]) -> Bool { BlockingSocket.send(bytes, to: fd) }

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
        guard let fd = try? UnixSocket.listen(on: path) else { return nil }
        self.fd = fd
        Thread.detachNewThread { [fd] in
            while true {
                let client = accept(fd, nil, nil)
                guard client >= 0 else { return }
                Thread.detachNewThread { serve(Stream(fd: client)) }
            }
        }
    }

    deinit { end() }

    /// Stops accepting connections. The socket file stays, as after SIGKILL of a server.
    func end() { shutdown(fd, Int32(SHUT_RDWR)) }
}
