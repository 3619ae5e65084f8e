// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import Glibc
import Host

/// Sockets of TCP on 127.0.0.1.
package enum LoopbackSocket {
    /// Listens on a free port, of another host address if the test is about it. The caller closes the descriptor.
    package static func listen(
        backlog: Int32 = 64,
        host: UInt32 = 0x7F00_0001
    ) throws -> (descriptor: Int32, port: UInt16) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var (address, size) = (Self.address(host, port: 0), socklen_t(MemoryLayout<sockaddr_in>.size))
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && Glibc.listen(descriptor, backlog) == 0
                    && getsockname(descriptor, $0, &size) == 0
            }
        }
        guard isListening else {
            close(descriptor)
            throw SystemError("listen")
        }
        return (descriptor, UInt16(bigEndian: address.sin_port))
    }

    /// Connects to a port. The caller closes the descriptor.
    package static func connect(port: UInt16) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.address(port: port)
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            let error = SystemError("connect")
            close(descriptor)
            throw error
        }
        return descriptor
    }

    package static func address(_ host: UInt32 = 0x7F00_0001, port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = host.bigEndian
        return address
    }
}
