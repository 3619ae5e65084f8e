// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Host
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

/// badged.conf(5), [log]: what users notice is in the log at the default level.
@Suite("The log at the default level", .timeLimit(.minutes(5)))
@Loop struct LogLevelTests {
    @Test("a failed authentication is logged with its reason; one that succeeds or is cancelled is not")
    func authentication() async throws {
        let server = try await TestServer(service: { _, _ in
            TestService { plan in
                plan.failures[.request] = EServiceFailure(.getTcTokenNetworkError, .connection, detail: "no route")
            }
        })
        let client = try server.connect()
        _ = await client.ask(Fixture.runAuth, "AUTH")
        _ = await client.next("AUTH")
        #expect(server.notices.contains { $0.contains("AUTH ended, Get_TcToken_Network_Error no route") })

        let fixture = try await Fixture(at: .accessRights)
        await fixture.client.send(#"{"cmd":"CANCEL"}"#)
        _ = await fixture.client.next("AUTH")
        #expect(fixture.server.logged.contains { $0.contains("AUTH ended, User_Cancelled") })
        #expect(!fixture.server.notices.contains { $0.contains("AUTH ended") })
    }

    @Test("a failed change of the PIN is logged with its reason")
    func changePIN() async throws {
        let fixture = try await Fixture()
        let card = VirtualEIDDescription.card { description in
            description.retryCounter = 0
            description.pukCounter = 0
        }
        try await fixture.server.insert(card)
        _ = await fixture.client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PUK")
        _ = await fixture.client.ask(#"{"cmd":"SET_PUK","value":"9876543210"}"#, "CHANGE_PIN")
        #expect(
            fixture.server.notices.contains { $0.contains("CHANGE_PIN ended, Establish_Pace_Channel_Puk_Inoperative") }
        )
    }

    @Test("a refusal by permission is logged once for each command")
    func refusals() async throws {
        let server = try await TestServer()
        let client = try server.connect(uid: 1001, [])
        for _ in 0..<3 { _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ACCESS_DENIED") }
        _ = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "ACCESS_DENIED")
        let lines = server.notices.filter { $0.contains("[access]") }
        #expect(lines.count == 2)
        #expect(lines.first?.contains("RUN_CHANGE_PIN refused") == true && lines.first?.contains("uid 1001") == false)
    }

    @Test("readers that come and go, and drivers that fail and recover, are logged")
    func readers() async throws {
        let backend = ChangingReaders()
        let server = try await TestServer(readers: 0, backends: [backend])
        let client = try server.connect()
        backend.send(.health([HealthCheck("pcscd", ok: false, advice: "start it")]))
        backend.send(.health([HealthCheck("pcscd", ok: false, advice: "start it")]))
        backend.send(.added(ReaderDescription(name: "Desk", takesCards: false)))
        _ = await client.next("READER")
        backend.send(.removed(reader: "Desk"))
        backend.send(.health([HealthCheck("pcscd", ok: true)]))
        backend.send(.added(ReaderDescription(name: "Door", takesCards: false)))
        while let reader = await client.next("READER"), reader["name"] != .string("Door") {}
        #expect(
            server.notices.filter { !$0.hasPrefix("client") } == [
                "pcscd does not work: start it", "reader 'Desk' (changing) is there",
                "reader 'Desk' (changing) is gone",
                "pcscd works again", "reader 'Door' (changing) is there",
            ]
        )
    }
}

/// A driver whose events the test sends. It is a fake and has no cards.
private final class ChangingReaders: ReaderBackend {
    let name = "changing"
    let events: AsyncStream<ReaderEvent>
    private let continuation: AsyncStream<ReaderEvent>.Continuation

    init() { (events, continuation) = AsyncStream.makeStream() }

    func send(_ event: ReaderEvent) { continuation.yield(event) }

    func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection { throw .removed }
    func rescan() {}
    func close() async { continuation.finish() }
}
