// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// The TCP connection to vpcd.
enum VPCDSocket {
    /// Connects to vpcd. Returns the descriptor, or -1.
    static func connect(_ host: String, _ port: String) -> Int32 {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, port, &hints, &found) == 0 else { return -1 }
        defer { freeaddrinfo(found) }
        var next = found
        while let address = next?.pointee {
            next = address.ai_next
            let descriptor = Glibc.socket(address.ai_family, address.ai_socktype, address.ai_protocol)
            guard descriptor >= 0 else { continue }
            // Limit the wait for a host that does not answer and for a reader that accepts no bytes.
            var timeout = timeval(tv_sec: 2, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout.size(ofValue: timeout)))
            if Glibc.connect(descriptor, address.ai_addr, address.ai_addrlen) == 0 {
                _ = clinux_set_cloexec(descriptor)
                _ = clinux_tcp_nodelay(descriptor)
                return descriptor
            }
            close(descriptor)
        }
        return -1
    }

    /// Returns the bytes that have arrived, possibly none; nil at the end of the connection.
    ///
    /// vpcd sends length and payload separately, with Nagle's algorithm. Without an immediate acknowledgement every
    /// command would wait 40 ms. The kernel resets TCP_QUICKACK, so it is set before each read.
    static func receive(from descriptor: Int32) -> [UInt8]? {
        _ = clinux_tcp_quickack(descriptor)
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return [] }
        guard count > 0 else { return nil }
        _ = clinux_tcp_quickack(descriptor)
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// Sends all bytes. Returns false if the connection has ended.
    static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, 0) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
