// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host

/// A TCP port of 127.0.0.1 and ::1 that no other program gets while this object exists. A program that sets
/// SO_REUSEADDR can listen on it, because the sockets of this object are bound and do not listen.
package final class ReservedPort: Sendable {
    package let number: UInt16
    private let sockets: [Int32]

    package init() throws {
        for _ in 0..<100 {
            var (number, sockets) = (UInt16(0), [Int32]())
            var v4 = LoopbackSocket.address(port: 0)
            if let socket = Self.bound(AF_INET, &v4) {
                sockets.append(socket)
                number = UInt16(bigEndian: v4.sin_port)
                var v6 = sockaddr_in6()
                v6.sin6_family = sa_family_t(AF_INET6)
                v6.sin6_port = v4.sin_port
                v6.sin6_addr = in6addr_loopback
                if let socket = Self.bound(AF_INET6, &v6) { sockets.append(socket) }
                let isTaken = sockets.count == 1 && errno == EADDRINUSE
                if !isTaken {
                    (self.number, self.sockets) = (number, sockets)
                    return
                }
            }
            for socket in sockets { close(socket) }
        }
        throw SystemError("bind", EADDRINUSE)
    }

    deinit { for socket in sockets { close(socket) } }

    /// Binds a socket, and sets `address` to what it is bound to; nil with errno if that is not possible.
    private static func bound<Address>(_ family: Int32, _ address: inout Address) -> Int32? {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        if family == AF_INET6 {
            setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &yes, socklen_t(MemoryLayout<Int32>.size))
        }
        var size = socklen_t(MemoryLayout<Address>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard isBound else {
            let code = errno
            close(descriptor)
            errno = code
            return nil
        }
        return descriptor
    }
}
