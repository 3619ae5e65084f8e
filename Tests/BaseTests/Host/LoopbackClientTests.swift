// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Testing

@testable import Host

@Suite("The user of a loopback connection", .timeLimit(.minutes(5)))
struct LoopbackClientTests {
    /// A listening socket, its port, and a connection to it.
    private struct Connection {
        let listener: Int32
        let client: Int32
        let accepted: Int32
        let port: UInt16

        init(isIPv6: Bool, isMapped: Bool = false) throws {
            // Programs that other tests start do not get these ends.
            let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
            listener = socket(isIPv6 && !isMapped ? AF_INET6 : AF_INET, type, 0)
            client = socket(isIPv6 ? AF_INET6 : AF_INET, type, 0)
            var (v4, v6) = (sockaddr_in(), sockaddr_in6())
            v4.sin_family = sa_family_t(AF_INET)
            v4.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            v6.sin6_family = sa_family_t(AF_INET6)
            v6.sin6_addr = in6addr_loopback
            let descriptor = listener
            if isIPv6, !isMapped {
                try #require(Self.call(&v6) { bind(descriptor, $0, $1) == 0 && listen(descriptor, 5) == 0 })
                var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
                try #require(Self.call(&v6) { address, _ in getsockname(descriptor, address, &size) == 0 })
                port = UInt16(bigEndian: v6.sin6_port)
            } else {
                try #require(Self.call(&v4) { bind(descriptor, $0, $1) == 0 && listen(descriptor, 5) == 0 })
                var size = socklen_t(MemoryLayout<sockaddr_in>.size)
                try #require(Self.call(&v4) { address, _ in getsockname(descriptor, address, &size) == 0 })
                port = UInt16(bigEndian: v4.sin_port)
            }
            let other = client
            if isMapped {
                v6.sin6_port = port.bigEndian
                withUnsafeMutableBytes(of: &v6.sin6_addr) { bytes in
                    bytes.copyBytes(from: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 127, 0, 0, 1])
                }
            }
            let isConnected =
                isIPv6 ? Self.call(&v6) { connect(other, $0, $1) == 0 } : Self.call(&v4) { connect(other, $0, $1) == 0 }
            try #require(isConnected)
            accepted = accept(listener, nil, nil)
        }

        private static func call<Address>(
            _ address: inout Address,
            _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Bool
        ) -> Bool {
            withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<Address>.size))
                }
            }
        }

        func end() { for descriptor in [listener, client, accepted] { close(descriptor) } }
    }

    @Test("the kernel reports the user of the other end", arguments: [(false, false), (true, false), (true, true)])
    func user(isIPv6: Bool, isMapped: Bool) throws {
        let connection = try Connection(isIPv6: isIPv6, isMapped: isMapped)
        defer { connection.end() }
        let client = try #require(LoopbackClient(socket: connection.accepted))
        #expect(LoopbackClient(bytes: client.bytes) == client)
        #expect(client.user(connectedTo: connection.port) == getuid())
        #expect(client.user(connectedTo: connection.port &+ 1) == nil)
    }

    @Test("a closed end has no user, although the kernel would report root")
    func closed() throws {
        let connection = try Connection(isIPv6: false)
        let client = try #require(LoopbackClient(socket: connection.accepted))
        close(connection.client)
        // A program that another test is starting may have the socket for a moment.
        var byte: UInt8 = 0
        try #require(read(connection.accepted, &byte, 1) == 0)
        #expect(client.user(connectedTo: connection.port) == nil)
        close(connection.accepted)
        #expect(client.user(connectedTo: connection.port) == nil)
        close(connection.listener)
    }

    @Test(
        "other sockets and other bytes are refused",
        arguments: [[], [1], Array(repeating: 0, count: 17)] as [[UInt8]]
    )
    func refusals(bytes: [UInt8]) {
        #expect(LoopbackClient(bytes: bytes) == nil)
        #expect(LoopbackClient(socket: -1) == nil && LoopbackClient(socket: STDIN_FILENO) == nil)
    }
}
