// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import HTTP
import RemoteIFD
import TestSupport
import Testing
import Text

/// What the run of remote readers can do that somebody has taken over. docs/hardening.md, badged-network.
@Suite("the run of remote readers in strange hands", .timeLimit(.minutes(5))) @Loop struct RemoteNetworkTests {
    nonisolated private static let stranger = String(repeating: "ab", count: 32)
    nonisolated private static let friend = String(repeating: "cd", count: 32)
    nonisolated private static let sender = RemoteAddress(host: .loopback, port: 1)
    nonisolated private static let ended = "badged-network has ended unexpectedly"

    enum Misdeed: CaseIterable {
        case silence, end, malformed, unknownKind, tooLong, manyDatagrams

        func answer(to socket: UInt32) -> [StandIn.Answer] {
            let opened = StandIn.framed(RemoteReport.opened(socket: socket, port: 5).bytes)
            let datagram = StandIn.framed(RemoteReport.datagram(socket: socket, [1], sender).bytes)
            return switch self {
            case .silence: []
            case .end: [opened, .end]
            case .malformed: [opened, StandIn.framed([3, 0, 0])]
            case .unknownKind: [opened, StandIn.framed([99, 0, 0, 0, 1])]
            case .tooLong: [opened, .bytes([0x7F, 0, 0, 0])]
            case .manyDatagrams: [opened] + [StandIn.Answer](repeating: datagram, count: 100)
            }
        }
    }

    @Test("a run that breaks a rule ends, and its sockets fail", arguments: Misdeed.allCases)
    func sockets(misdeed: Misdeed) async throws {
        let standIn = try StandIn(remote: { request in
            if case .open(let socket, _, _, _) = request { misdeed.answer(to: socket) } else { [] }
        })
        let network = RemoteNetwork(standIn.network, grace: misdeed == .silence ? 1 : 600_000)
        let (events, arrival) = AsyncStream.makeStream(of: String.self)
        let socket = network.open(.datagrams, port: 0, interface: nil) { socket, event in
            switch event {
            case .opened: arrival.yield("opened")
            case .datagram:
                // Somebody who does not want more datagrams.
                socket.read(false)
            case .connection: arrival.yield("connection")
            case .failed(let text), .ended(let text):
                arrival.yield(text)
                arrival.finish()
            }
        }
        var all: [String] = []
        for await event in events { all.append(event) }
        #expect(all == (misdeed == .silence ? ["badged-network does not answer"] : ["opened", Self.ended]))
        socket.close()
    }

    enum Order: CaseIterable {
        case paired, pairing, pairingWithDevice

        var security: LinkSecurity {
            switch self {
            case .paired: .paired(trusted: [friend])
            case .pairing: .pairing(code: SecretBox(Secret("1234".utf8)))
            case .pairingWithDevice: .pairing(code: SecretBox(Secret("1234".utf8)), device: friend)
            }
        }

        /// A device that the run must not name.
        var lie: String { self == .pairing ? "../\u{1B}[2J" : stranger }
    }

    /// The events of a link whose run answers in this way.
    private func events(_ security: LinkSecurity, _ answer: RemoteLink.Event?) async throws -> [RemoteLink.Event] {
        let standIn = try StandIn(remote: { request in
            guard case .connect(let link, _, _, _) = request, let answer else { return [] }
            return [
                StandIn.framed(RemoteReport.event(link: link, answer).bytes),
                StandIn.framed(RemoteReport.event(link: link, .ended(.closed(1000))).bytes),
            ]
        })
        let network = RemoteNetwork(standIn.network, grace: 1)
        var times = RemoteLink.Times()
        times.setUp = answer == nil ? 1 : 600_000
        let link = network.connect(
            to: Self.sender,
            interface: nil,
            try await LinkTests.borrower.value,
            security,
            times: times
        )
        var all: [RemoteLink.Event] = []
        for await event in link.events { all.append(event) }
        return all
    }

    @Test("a run cannot name a device to which the link was not meant to go", arguments: Order.allCases)
    func devices(order: Order) async throws {
        #expect(try await events(order.security, .opened(device: order.lie)) == [.ended(.failed(Self.ended))])
        let good = RemoteLink.Event.opened(device: Self.friend)
        #expect(try await events(order.security, good) == [good, .ended(.closed(1000))])
    }

    @Test("a run that says nothing about a link is ended after the limits of the link")
    func silence() async throws {
        let ending = RemoteLink.Ending.failed("badged-network does not answer")
        #expect(try await events(.paired(trusted: []), nil) == [.ended(ending)])
    }

    @Test("a run that hangs after it has opened a socket is ended, and asks tell so", arguments: [true, false])
    func hang(isAsked: Bool) async throws {
        let standIn = try StandIn(
            lives: { false },
            remote: { request in
                guard case .open(let socket, _, _, _) = request else { return [] }
                return [StandIn.framed(RemoteReport.opened(socket: socket, port: 5).bytes)]
            }
        )
        var times = Heartbeat.Times()
        (times.interval, times.answer, times.start) = (isAsked ? 600_000 : 0, 1, 1)
        let network = RemoteNetwork(standIn.network, grace: 600_000, heartbeat: times)
        #expect(await network.answers(), "no run is needed yet")
        let (events, arrival) = AsyncStream.makeStream(of: String.self)
        let socket = network.open(.datagrams, port: 0, interface: nil) { _, event in
            guard case .ended(let text) = event else { return }
            arrival.yield(text)
            arrival.finish()
        }
        if isAsked { #expect(await !network.answers()) }
        var all: [String] = []
        for await event in events { all.append(event) }
        #expect(all == ["badged-network does not answer"])
        socket.close()
    }
}
