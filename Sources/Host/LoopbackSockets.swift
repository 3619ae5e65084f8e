// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// Listening TCP sockets that only this computer reaches: 127.0.0.1 and, where there is IPv6, ::1.
package enum LoopbackSockets {
    /// Non-blocking, closed on exec.
    /// - Throws: `StartError` when the port is taken.
    package static func open(port: UInt16) throws(StartError) -> [Int32] {
        var v4 = sockaddr_in()
        v4.sin_family = sa_family_t(AF_INET)
        v4.sin_port = port.bigEndian
        v4.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let first = try listen(&v4, AF_INET, port)
        var v6 = sockaddr_in6()
        v6.sin6_family = sa_family_t(AF_INET6)
        v6.sin6_port = port.bigEndian
        v6.sin6_addr = in6addr_loopback
        do throws(StartError) {
            guard let second = try? listen(&v6, AF_INET6, port) else {
                // A computer without IPv6 is complete with the other one; a port that is taken there is not ours.
                if errno == EADDRINUSE { throw taken(port) }
                return [first]
            }
            return [first, second]
        } catch {
            close(first)
            throw error
        }
    }

    private static func listen<Address>(
        _ address: inout Address,
        _ family: Int32,
        _ port: UInt16
    ) throws(StartError) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw taken(port) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        if family == AF_INET6 {
            setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &yes, socklen_t(MemoryLayout<Int32>.size))
        }
        let isListening = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size)) == 0 && Glibc.listen(descriptor, 64) == 0
            }
        }
        guard isListening else {
            let error = taken(port)
            let code = errno
            close(descriptor)
            errno = code
            throw error
        }
        return descriptor
    }

    private static func taken(_ port: UInt16) -> StartError {
        StartError(
            "cannot listen on port \(port): \(String(cString: strerror(errno)))",
            hint: "another program, such as AusweisApp, or another user's badged may have it; see [activation] port"
        )
    }
}
