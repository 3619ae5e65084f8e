// SPDX-License-Identifier: GPL-3.0-or-later
package import Glibc
import Host

/// Unix sockets of tests, which block and are not inherited by programs that start later. The caller closes them.
package enum UnixSocket {
    /// A path that no other test uses, for a socket that the caller unlinks.
    package static var temporaryPath: String {
        "/tmp/badged-test-\(getpid())-\(UInt32.random(in: .min ... .max)).sock"
    }

    /// Connects a stream socket.
    /// - Throws: `SystemError` when the connection is refused.
    package static func connect(to path: String) throws -> Int32 {
        try open(SOCK_STREAM, at: path) { Glibc.connect($0, $1, $2) }
    }

    /// Binds a socket to a new file. A stream socket does not listen yet.
    package static func bind(to path: String, _ type: __socket_type = SOCK_STREAM) throws -> Int32 {
        try open(type, at: path) { Glibc.bind($0, $1, $2) }
    }

    package static func listen(on path: String, type: __socket_type = SOCK_STREAM) throws -> Int32 {
        try open(type, at: path) { Glibc.bind($0, $1, $2) == 0 ? Glibc.listen($0, 16) : -1 }
    }

    /// Makes two sockets that are connected to one another.
    package static func pair(_ type: __socket_type = SOCK_STREAM) throws -> (Int32, Int32) {
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0, &pair) == 0 else {
            throw SystemError("socketpair")
        }
        return (pair[0], pair[1])
    }

    private static func open(
        _ type: __socket_type,
        at path: String,
        _ call: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws -> Int32 {
        let descriptor = socket(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard UnixAddress(path: path)?.withPointer({ call(descriptor, $0, $1) }) == 0 else {
            let error = SystemError("a socket at \(path)")
            close(descriptor)
            throw error
        }
        return descriptor
    }
}
