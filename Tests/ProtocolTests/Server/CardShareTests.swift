// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Host
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@testable import Server

@Suite("Users share a reader", .timeLimit(.minutes(5)))
@Loop struct CardShareTests {
    private static let start = #"{"cmd":"RUN_CHANGE_PIN"}"#
    private static let setCard = #"{"cmd":"SET_CARD","name":"Simulator"}"#

    private static func server(_ limit: Duration = .seconds(600)) async throws -> TestServer {
        var limits = ServerLimits()
        limits.sharedPromptTimeout = limit
        return try await TestServer(limits: limits)
    }

    /// Connects a client of a user, and starts a workflow that waits for a card.
    private func waiting(_ server: TestServer, _ uid: UInt32?) async throws -> TestClient {
        let client = try server.connect(uid: uid)
        _ = await client.ask(Self.start, "INSERT_CARD")
        return client
    }

    /// The workflow of the only client that was asked for the PIN.
    private func holder(_ server: TestServer) throws -> Workflow {
        let held = server.server.sessions.compactMap(\.workflow).filter { $0.state == "ENTER_PIN" }
        #expect(held.count == 1)
        return try #require(held.first)
    }

    /// Inserts a card again and again, ends each workflow that gets it, and returns the users in their order.
    private func order(_ server: TestServer, _ count: Int) async throws -> [UInt32?] {
        let observer = try server.connect(uid: 9)
        var users: [UInt32?] = []
        for _ in 0..<count {
            try await server.insert()
            while !server.server.sessions.contains(where: { $0.workflow?.state == "ENTER_PIN" }) {
                _ = await observer.exchange()
            }
            let workflow = try holder(server)
            users.append(workflow.uid)
            workflow.cancel()
            await server.released("Simulator")
        }
        return users
    }

    @Test(
        "one user after another gets the card, each of them in the order of its clients, and root is first",
        arguments: [
            ([1, 1, 1, 1, 2, 3, 3], [1, 2, 3, 1, 3, 1, 1]),
            ([2, 1, 1, 1, 1, 2], [2, 1, 2, 1, 1, 1]),
            ([1, 1, 1, 0, 0, 2], [0, 0, 1, 2, 1, 1]),
            ([nil, nil, 1, nil], [nil, 1, nil, nil]),
        ] as [([UInt32?], [UInt32?])]
    )
    func turns(users: [UInt32?], expected: [UInt32?]) async throws {
        let server = try await Self.server()
        var clients: [TestClient] = []
        for uid in users { clients.append(try await waiting(server, uid)) }
        #expect(try await order(server, users.count) == expected)
        withExtendedLifetime(clients) {}
    }

    @Test("a user whose workflows follow one another does not overtake a user who waits")
    func again() async throws {
        let server = try await Self.server()
        let greedy = try await waiting(server, 1001)
        try await server.insert()
        _ = await greedy.next("ENTER_PIN")
        let more = try await waiting(server, 1001)
        let other = try await waiting(server, 1002)
        _ = await greedy.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        _ = await greedy.ask(Self.start, "INSERT_CARD")
        #expect(try await order(server, 3) == [1002, 1001, 1001])
        withExtendedLifetime([more, other]) {}
    }

    @Test("an unanswered question ends soon after another user begins to wait, and costs no try")
    func unanswered() async throws {
        let server = try await Self.server(.milliseconds(1))
        let holder = try await waiting(server, 1001)
        try await server.insert()
        _ = await holder.next("ENTER_PIN")
        // Nobody else waits: its own workflows do not count.
        let own = try await waiting(server, 1001)
        #expect(try self.holder(server).isAwaited == false)
        let other = try await waiting(server, 1002)
        let end = await holder.next("CHANGE_PIN")
        #expect(end == #"{"msg":"CHANGE_PIN","reason":"Prompt_Timeout","success":false}"#)
        #expect(server.logged.contains { $0.contains("and another user waits for the card") })
        await server.released("Simulator")
        #expect(await server.readers?.cardState(in: "Simulator")?.retryCounter == 3)
        try await server.insert()
        #expect(await other.next("ENTER_PIN") != nil)
        withExtendedLifetime(own) {}
    }

    @Test("wrong answers do not extend the time of a question while another user waits")
    func wrongAnswers() async throws {
        let server = try await Self.server()
        let client = try await waiting(server, 1001)
        try await server.insert()
        _ = await client.next("ENTER_PIN")
        let other = try await waiting(server, 1002)
        let deadline = try #require(try holder(server).sharedDeadlines["ENTER_PIN"])
        _ = await client.ask(#"{"cmd":"SET_PIN","value":"111111"}"#, "ENTER_PIN")
        #expect(try holder(server).sharedDeadlines == ["ENTER_PIN": deadline])
        // When nobody waits any longer, the usual time holds.
        _ = await other.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        #expect(try holder(server).sharedDeadlines.isEmpty)
    }

    @Test("a card that writes is not interrupted, although the time is over and another user waits")
    func write() async throws {
        let reader = HeldReader(try VirtualCard())
        var limits = ServerLimits()
        limits.sharedPromptTimeout = .milliseconds(1)
        let server = try await TestServer(readers: 0, backends: [reader.backend], limits: limits)
        await server.ready([HeldReader.name])
        let client = try server.connect(uid: 1001)
        reader.insert()
        _ = await client.ask(Self.start, "ENTER_PIN")
        _ = await client.ask(#"{"cmd":"SET_PIN","value":"123456"}"#, "ENTER_NEW_PIN")
        reader.holdCommand(0)
        await client.send(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#)
        await reader.arrival()
        let other = try await waiting(server, 1002)
        reader.openGate()
        #expect(await client.next("CHANGE_PIN") == #"{"msg":"CHANGE_PIN","success":true}"#)
        #expect(await other.next("ENTER_PIN") != nil)
    }

    @Test(
        "a workflow that loses its card again and again keeps its place for a bounded time",
        arguments: [false, true]
    )
    func lostAgain(isOver: Bool) async throws {
        let server = try await Self.server(isOver ? .milliseconds(0) : .seconds(600))
        let first = try await waiting(server, 1001)
        try await server.insert()
        _ = await first.next("ENTER_PIN")
        await server.withdraw()
        _ = await first.next("INSERT_CARD")
        let second = try await waiting(server, 1002)
        try await server.insert()
        #expect(await (isOver ? second : first).next("ENTER_PIN") != nil)
        withExtendedLifetime([first, second]) {}
    }

    @Test("cards of SET_CARD take turns by user, although one user sends it without end")
    func virtualCards() async throws {
        let server = try await Self.server(.milliseconds(1))
        var flood: [TestClient] = []
        for _ in 0..<5 { flood.append(try await waiting(server, 1001)) }
        _ = await flood[0].ask(Self.setCard, "ENTER_PIN")
        let other = try server.connect(uid: 1002)
        let busy = await other.ask(Self.start, "INSERT_CARD")
        #expect(busy?["error"]?.string?.contains("busy in another client's workflow") == true)
        // The reader becomes free for a moment, and the client learns that; whoever is faster, each user has its turn.
        _ = await flood[0].next("CHANGE_PIN")
        for client in flood[1...] { await client.send(Self.setCard) }
        #expect(await other.next("INSERT_CARD")?["error"] == nil)
        #expect(await other.ask(Self.setCard, "ENTER_PIN") != nil)
    }

    @Test("a card of SET_CARD for a reader of another user is inserted when its turn comes, and not after its workflow")
    func postponed() async throws {
        let server = try await Self.server()
        let holder = try await waiting(server, 1001)
        _ = await holder.ask(Self.setCard, "ENTER_PIN")
        let gone = try await waiting(server, 1002)
        _ = await gone.ask(Self.setCard, "INSERT_CARD")
        let next = try await waiting(server, 1003)
        _ = await next.ask(Self.setCard, "INSERT_CARD")
        _ = await gone.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        _ = await holder.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        #expect(await next.next("ENTER_PIN") != nil)
        _ = await next.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        await server.released("Simulator")
        #expect(server.registry["Simulator"]?.insertion == nil)
    }
}
