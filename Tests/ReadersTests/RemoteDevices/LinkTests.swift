// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Glibc
import ReadersRemote
import TestSupport
import Testing
import Text

@testable import RemoteDevices

@Suite(.timeLimit(.minutes(5))) @Loop struct LinkTests {
    /// RSA keys are slow to make, so all tests use the same ones.
    nonisolated static let lender = Task { try await RemoteIdentity.generate() }
    nonisolated static let borrower = Task { try await RemoteIdentity.generate() }

    /// Times that a busy machine does not reach.
    private static let patient: LinkTimes = {
        var times = LinkTimes()
        (times.setUp, times.ping, times.pong) = (600_000, 600_000, 600_000)
        return times
    }()

    private static func code(_ digits: String) -> LinkSecurity { .pairing(code: SecretBox(Secret(digits.utf8))) }

    /// Connects two ends over the loopback interface.
    private func pair(
        _ server: LinkSecurity,
        _ client: LinkSecurity,
        times: LinkTimes = patient,
        host: RemoteAddress.Host = .loopback
    ) async throws -> (server: RemoteLink, client: RemoteLink) {
        let socket = try PortSocket(.connections, port: 0, interface: nil)
        let client = RemoteLink.connect(
            to: RemoteAddress(host: host, port: socket.port),
            try await Self.borrower.value,
            client,
            times: times
        )
        let accepted: Int32 = try await withCheckedThrowingContinuation { continuation in
            var isTaken = false
            do {
                try socket.whenReady {
                    guard !isTaken, let connection = socket.accept() else { return }
                    isTaken = true
                    continuation.resume(returning: connection.socket)
                }
            } catch { continuation.resume(throwing: error) }
        }
        socket.close()
        return (RemoteLink.serve(accepted, try await Self.lender.value, server, times: times), client)
    }

    @Test("messages without content during the handshake of TLS do not hold the loop")
    func endlessHandshake() async throws {
        var ends: [Int32] = [0, 0]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let identity = try await Self.borrower.value
        let endpoint = try TLSEndpoint(socket: ends[0], identity, .paired(trusted: []), isServer: false)
        guard case .waits = endpoint.handshake() else { throw Unexpected("the handshake has ended") }
        // HelloRequest. RFC 5246, 7.4.1.1.
        let flood = Array(repeatElement([0x16, 3, 3, 0, 4, 0, 0, 0, 0] as [UInt8], count: 1000).joined())
        #expect(send(ends[1], flood, flood.count, 0) == flood.count)
        guard case .waits = endpoint.handshake() else { throw Unexpected("the handshake has ended") }
        var unread: Int32 = 0
        _ = ioctl(ends[0], UInt(FIONREAD), &unread)
        #expect(unread > 8000)
    }

    private func events(_ link: RemoteLink) async -> [RemoteLink.Event] {
        var all: [RemoteLink.Event] = []
        for await event in link.events { all.append(event) }
        return all
    }

    /// The loopback addresses that this machine has.
    nonisolated private static let hosts: [RemoteAddress.Host] = {
        let six = RemoteAddress.Host.six([UInt8](repeating: 0, count: 15) + [1], scope: 0)
        var address = sockaddr_in6()
        (address.sin6_family, address.sin6_addr) = (sa_family_t(AF_INET6), in6addr_loopback)
        let descriptor = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        let result = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
        return result == 0 ? [.loopback, six] : [.loopback]
    }()

    @Test("Paired ends see each other's fingerprint and exchange messages, over IPv4 and IPv6", arguments: hosts)
    func paired(_ host: RemoteAddress.Host) async throws {
        let (lender, borrower) = (try await Self.lender.value, try await Self.borrower.value)
        let (server, client) = try await pair(
            .paired(trusted: [borrower.fingerprint]),
            .paired(trusted: [lender.fingerprint]),
            host: host
        )
        let long = [UInt8](repeating: 0x61, count: 100_000)
        client.send(Array("hello".utf8))
        client.send(long)
        var own: [RemoteLink.Event] = []
        for await event in client.events {
            own.append(event)
            if case .opened = event { client.close() }
        }
        #expect(
            await events(server) == [
                .opened(device: borrower.fingerprint), .message(Array("hello".utf8)), .message(long),
                .ended(.closed(1000)),
            ]
        )
        #expect(own == [.opened(device: lender.fingerprint), .ended(.closed(1000))])
    }

    @Test("A pairing with the right code opens; with a wrong one both ends report it")
    func pairing() async throws {
        let (lender, borrower) = (try await Self.lender.value, try await Self.borrower.value)
        let (server, client) = try await pair(Self.code("0777"), Self.code("0777"))
        var opened: RemoteLink.Event?
        for await event in client.events {
            if opened == nil { opened = event }
            client.close()
        }
        #expect(opened == .opened(device: lender.fingerprint))
        #expect(await events(server).first == .opened(device: borrower.fingerprint))
        let (strict, wrong) = try await pair(Self.code("0777"), Self.code("0778"))
        let endings = (await events(strict), await events(wrong))
        #expect(endings.0 == [.ended(.wrongCode)], "\(endings.0)")
        #expect(endings.1 == [.ended(.wrongCode)])
    }

    @Test("An unpaired device on either side gets no byte beyond TLS")
    func strangers() async throws {
        let (server, client) = try await pair(
            .paired(trusted: []),
            .paired(trusted: [try await Self.lender.value.fingerprint])
        )
        #expect(await events(server) == [.ended(.untrusted)])
        // The client has seen the proof of the server, so it knows who refuses.
        #expect(await events(client) == [.ended(.rejected)])
        let (honest, deceived) = try await pair(
            .paired(trusted: [try await Self.borrower.value.fingerprint]),
            .paired(trusted: [])
        )
        #expect(await events(deceived) == [.ended(.untrusted)])
        #expect(await events(honest) == [.ended(.refused)])
    }

    @Test("A paired device is refused while the other end pairs, and the other way round")
    func modes() async throws {
        let (server, client) = try await pair(
            Self.code("0777"),
            .paired(trusted: [try await Self.lender.value.fingerprint])
        )
        #expect(await events(server) == [.ended(.refused)])
        #expect(await events(client) == [.ended(.refused)])
    }

    @Test("A connection stays while both ends answer pings")
    func pings() async throws {
        let (lender, borrower) = (try await Self.lender.value, try await Self.borrower.value)
        var times = Self.patient
        times.ping = 1
        let (server, client) = try await pair(
            .paired(trusted: [borrower.fingerprint]),
            .paired(trusted: [lender.fingerprint]),
            times: times
        )
        for number in 0..<20 { client.send([UInt8(0x61 + number)]) }
        var count = 0
        for await event in server.events {
            guard case .message = event else { continue }
            count += 1
            if count == 20 { server.close(1001) }
        }
        #expect(count == 20)
        #expect(await events(client).last == .ended(.closed(1001)))
    }

    @Test("Messages that fill the sockets of both directions at once arrive")
    func bothWays() async throws {
        let (lender, borrower) = (try await Self.lender.value, try await Self.borrower.value)
        let (server, client) = try await pair(
            .paired(trusted: [borrower.fingerprint]),
            .paired(trusted: [lender.fingerprint])
        )
        let long = [UInt8](repeating: 0x61, count: IFDMessage.maximumCount)
        let count = (1 << 20) / long.count
        for peer in [server, client] {
            for _ in 0..<count { peer.send(long) }
        }
        for peer in [server, client] {
            var received: [RemoteLink.Event] = []
            for await event in peer.events {
                received.append(event)
                if received.count == count + 1 { break }
            }
            #expect(received.dropFirst() == [RemoteLink.Event](repeating: .message(long), count: count)[...])
        }
        client.close()
    }

    @Test("A key and its certificate are the same after they were stored")
    func identity() async throws {
        let borrower = try await Self.borrower.value
        let own = try await Self.lender.value
        let read = try RemoteIdentity(key: try own.encodedKey(), certificate: own.encodedCertificate)
        #expect(read.fingerprint == own.fingerprint)
        #expect(throws: CryptoError.self) {
            try RemoteIdentity(key: try own.encodedKey(), certificate: borrower.encodedCertificate)
        }
    }
}
