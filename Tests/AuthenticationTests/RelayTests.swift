// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EIDServer
import EService
import Glibc
import HTTP
import Host
import TestSupport
import Testing
import Text

/// A badged-network that somebody has taken over: the real program, behind a relay that changes what badged asks for.
private final class TakenOver: Sendable {
    let network: Network
    private let folder: TemporaryFolder

    /// Each transfer to the first address goes to the second one. What the program reports about it is true.
    init(exchanging asked: String, for other: String) throws {
        let program = try #require(ChildProcess.path(of: "badged-network"))
        folder = try TemporaryFolder()
        let path = "\(folder.path)/network.sock"
        let listener = try UnixSocket.listen(on: path)
        var network = Network(socket: path)
        network.heartbeat = .patient
        self.network = network
        _ = startThread {
            while case let badged = accept(listener, nil, nil), badged >= 0 {
                guard let (relay, end) = try? UnixSocket.pair() else { return }
                startReaped(program, with: end)
                close(end)
                _ = startThread {
                    while let message = Self.receive(badged) {
                        Self.send(Self.exchange(message, asked, other), to: relay)
                    }
                    shutdown(relay, Int32(SHUT_RDWR))
                }
                _ = startThread {
                    while let bytes = BlockingSocket.receive(from: relay), BlockingSocket.send(bytes, to: badged) {}
                    shutdown(badged, Int32(SHUT_RDWR))
                }
            }
        }
    }

    private static func exchange(_ message: [UInt8], _ asked: String, _ other: String) -> [UInt8] {
        guard case .transfer(let transfer) = NetworkRequest(bytes: message), transfer.request.address.text == asked,
            let address = WebAddress(other)
        else { return message }
        var request = HTTPRequest(
            method: transfer.request.method,
            address: address,
            headers: transfer.request.headers,
            body: transfer.request.body,
            maximumLength: transfer.request.maximumLength
        )
        request.readsDocument = transfer.request.readsDocument
        request.refusesPrivateServers = transfer.request.refusesPrivateServers
        let changed = NetworkRequest.Transfer(
            number: transfer.number,
            session: transfer.session,
            request,
            transfer.conditions,
            proxy: transfer.proxy,
            connectMilliseconds: transfer.connectMilliseconds,
            totalMilliseconds: transfer.totalMilliseconds
        )
        return NetworkRequest.transfer(changed).bytes
    }

    private static func receive(_ socket: Int32) -> [UInt8]? {
        BlockingSocket.receive(4, from: socket).flatMap { length in
            BlockingSocket.receive(length.reduce(0) { $0 << 8 | Int($1) }, from: socket)
        }
    }

    private static func send(_ message: [UInt8], to socket: Int32) {
        BlockingSocket.send(withUnsafeBytes(of: UInt32(message.count).bigEndian) { Array($0) } + message, to: socket)
    }
}

/// What a badged-network that is taken over can do to an authentication. docs/hardening.md, badged-network.
@Suite("RUN_AUTH through strange hands", .timeLimit(.minutes(5)))
@Loop struct RelayTests {
    private static let own = ["optional": "", "required": "GivenNames"]
    private static let strange = ["optional": "", "required": "FamilyName"]

    private func run(_ eidServer: EIDServer, _ asked: String, _ other: String) async throws -> AuthenticationRun {
        let relay = try TakenOver(exchanging: asked, for: other)
        let server = try await TestServer.online(eidServer) { $0.network = relay.network }
        return try await AuthenticationRun(server, asked)
    }

    @Test("the relay alone changes nothing")
    func nothing() async throws {
        let eidServer = try EIDServer()
        let url = try eidServer.tcTokenURL(Self.own)
        let run = try await run(eidServer, "https://localhost/", "https://localhost/")
        #expect(run.outcome != "ok", "no service is there")
        let good = try await self.run(eidServer, url, url)
        #expect(good.outcome == "ok" && good.rights == ["GivenNames"])
    }

    @Test("it can exchange the session for another one at the same service, as the documentation says")
    func exchangedSession() async throws {
        let eidServer = try EIDServer()
        let run = try await run(
            eidServer,
            try eidServer.tcTokenURL(Self.own),
            try eidServer.tcTokenURL(Self.strange)
        )
        #expect(run.outcome == "ok")
        // The user has seen what the other session asks for, and has authenticated that session.
        #expect(run.rights == ["FamilyName"])
        #expect(eidServer.report()?["outcome"] == .string("ok"))
    }

    @Test("it cannot exchange the session for one at another service, which gets no data")
    func otherService() async throws {
        let (eidServer, other) = (try EIDServer(), try EIDServer())
        let run = try await run(eidServer, try eidServer.tcTokenURL(Self.own), try other.tcTokenURL(Self.strange))
        #expect(run.outcome != "ok")
        #expect(run.sent == "none", "\(run.outcome)")
        #expect(other.report()?["outcome"] != .string("ok"))
    }
}
