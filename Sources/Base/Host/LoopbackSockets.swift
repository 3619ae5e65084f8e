// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Text

/// TCP sockets that listen on 127.0.0.1 and, if the computer has IPv6, on ::1.
package enum LoopbackSockets {
    /// Whether a host is this computer: `localhost`, an address in 127.0.0.0/8, or ::1 without brackets. RFC 6890.
    ///
    /// A name such as `127.example.org`, and an address in another form, such as 127.1, is none.
    package static func areReached(by host: String) -> Bool {
        if host.lowercased() == "localhost" { return true }
        var (v4, v6) = (in_addr(), in6_addr())
        if inet_pton(AF_INET, host, &v4) == 1 { return UInt32(bigEndian: v4.s_addr) >> 24 == 127 }
        guard inet_pton(AF_INET6, host, &v6) == 1 else { return false }
        return withUnsafeBytes(of: v6) { $0.dropLast().allSatisfy { $0 == 0 } && $0.last == 1 }
    }

    /// Opens the sockets: non-blocking, closed on exec.
    /// - Throws: `SystemError` if the port is in use.
    package static func open(port: UInt16) throws(SystemError) -> [Int32] {
        var v4 = sockaddr_in()
        v4.sin_family = sa_family_t(AF_INET)
        v4.sin_port = port.bigEndian
        v4.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let first = try listen(&v4, AF_INET)
        var v6 = sockaddr_in6()
        v6.sin6_family = sa_family_t(AF_INET6)
        v6.sin6_port = port.bigEndian
        v6.sin6_addr = in6addr_loopback
        do throws(SystemError) {
            guard let second = try? listen(&v6, AF_INET6) else {
                // Without IPv6, 127.0.0.1 is enough. If another program has the port on ::1, the port is in use.
                if errno == EADDRINUSE { throw SystemError("bind") }
                return [first]
            }
            return [first, second]
        } catch {
            close(first)
            throw error
        }
    }

    private static func listen<Address>(_ address: inout Address, _ family: Int32) throws(SystemError) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
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
            let error = SystemError("bind")
            close(descriptor)
            errno = error.code
            throw error
        }
        return descriptor
    }

    /// Returns the port of a listening socket; nil if it has none.
    package static func port(of socket: Int32) -> UInt16? { address(of: socket)?.port }

    /// Whether a socket listens on 127.0.0.1 or ::1, and on a port; 0 stands for any port.
    package static func isListening(_ socket: Int32, port: UInt16) -> Bool {
        var (isListening, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        guard getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0, isListening == 1,
            let own = address(of: socket)
        else { return false }
        return own.isLoopback && (port == 0 || own.port == port)
    }

    private static func address(of socket: Int32) -> (port: UInt16, isLoopback: Bool)? {
        var address = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let family = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(socket, address, &size) == 0 ? Int32(address.pointee.sa_family) : -1
            }
        }
        guard family == AF_INET || family == AF_INET6 else { return nil }
        return withUnsafeBytes(of: &address) { bytes in
            // Both kinds of addresses have the port at the same place. ip(7), ipv6(7)
            let port = UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
            let host = family == AF_INET ? bytes[4..<8] : bytes[8..<24]
            return (
                port, host.elementsEqual(family == AF_INET ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1])
            )
        }
    }

    /// The maximum number of characters of the name of an eID client.
    package static let maximumName = 80

    /// Asks the eID client that owns the port to show itself (TR-03124-1). Blocks for some seconds at most.
    /// - Returns: the name of that client; nil if there is no eID client.
    package static func askOwnerToShowItself(port: UInt16) -> String? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var timeout = timeval(tv_sec: 4, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, size)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isConnected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        let request = "GET /eID-Client?ShowUI HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n"
        guard isConnected, send(descriptor, request, request.utf8.count, Int32(MSG_NOSIGNAL)) == request.utf8.count
        else { return nil }
        // Only the header is needed, and it is in the first bytes.
        var answer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &answer, answer.count, 0)
        guard count > 0 else { return nil }
        return owner(answer: answer[..<count])
    }

    /// Extracts the Server header of an eID client. TR-03124-1 2.2.2.1.
    static func owner(answer: ArraySlice<UInt8>) -> String? {
        for line in answer.split(separator: 0x0A) {
            let line = String(decoding: line, as: UTF8.self)
            guard line.lowercased().hasPrefix("server:"), line.includes("(TR-03124-1") else { continue }
            let name = line.dropFirst("server:".count).drop { $0 == " " }.prefix { $0 != "\r" }
            return String(name.prefix(maximumName))
        }
        return nil
    }
}
