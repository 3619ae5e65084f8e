// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Host
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@testable import Server

@Suite("Users share a reader", .timeLimit(.minutes(5)))
@Loop struct CardShareTests {
    private static let start = #"{"cmd":"RUN_CHANGE_PIN"}"#
    private static let cancel = #"{"cmd":"CANCEL"}"#
    private static let setCard = #"{"cmd":"SET_CARD","name":"Simulator"}"#

    private static func limits(_ shared: Duration) -> ServerLimits {
        var limits = ServerLimits()
        limits.sharedPromptTimeout = shared
        return limits
    }

    /// A server with a virtual reader, whose card leaves at the end of a workflow.
    private static func server(_ shared: Duration = .seconds(600)) async throws -> TestServer {
        try await TestServer(limits: limits(shared))
    }

    /// A server with a reader whose card stays.
    private static func desk(_ shared: Duration = .seconds(600)) async throws -> (TestServer, HeldReader) {
        let reader = HeldReader(try VirtualCard())
        let server = try await TestServer(readers: 0, backends: [reader.backend], limits: limits(shared))
        await server.ready([HeldReader.name])
        return (server, reader)
    }

    /// Connects a client of a user, and starts a workflow that waits for a card.
    private func waiting(_ server: TestServer, _ uid: UInt32?) async throws -> TestClient {
        let client = try server.connect(uid: uid)
        _ = await client.ask(Self.start, "INSERT_CARD")
        return client
    }

    private func holders(_ server: TestServer) -> [Session] {
        server.server.sessions.filter { $0.workflow?.state == "ENTER_PIN" }
    }

    /// Inserts a card again and again, ends each workflow that gets it, and returns the users in their order.
    private func order(_ server: TestServer, _ count: Int) async throws -> [UInt32?] {
        let observer = try server.connect(uid: 9)
        var users: [UInt32?] = []
        for _ in 0..<count {
            try await server.insert()
            while holders(server).isEmpty, !Task.isCancelled { _ = await observer.exchange() }
            let holder = try #require(holders(server).first)
            #expect(holders(server).count == 1)
            users.append(holder.uid)
            holder.workflow?.cancel()
            await server.released("Simulator")
        }
        return users
    }

    // MARK: The order

    @Test(
        "one user after another gets the card, each in the order of its clients",
        arguments: [
            ([1, 1, 1, 1, 2, 3, 3], [1, 2, 3, 1, 3, 1, 1]),
            ([2, 1, 1, 1, 1, 2], [2, 1, 2, 1, 1, 1]),
            ([1, 1, 1, 0, 0, 2], [1, 0, 2, 1, 0, 1]),
            ([nil, nil, 1, nil], [nil, 1, nil, nil]),
            (Array(repeating: 1, count: 20) + [2], [1, 2] + Array(repeating: 1, count: 19)),
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
        _ = await greedy.ask(Self.cancel, "CHANGE_PIN")
        _ = await greedy.ask(Self.start, "INSERT_CARD")
        #expect(try await order(server, 3) == [1002, 1001, 1001])
        withExtendedLifetime([more, other]) {}
    }

    @Test("a card that stays goes to the user who waits, although the last user starts again at once, without end")
    func stays() async throws {
        let (server, reader) = try await Self.desk()
        reader.insert()
        var clients: [TestClient] = []
        for uid: UInt32 in [1001, 1002] { clients.append(try server.connect(uid: uid)) }
        _ = await clients[0].ask(Self.start, "ENTER_PIN")
        _ = await clients[1].ask(Self.start, "INSERT_CARD")
        for number in 0..<6 {
            let (holder, other) = (clients[number % 2], clients[1 - number % 2])
            _ = await holder.ask(Self.cancel, "CHANGE_PIN")
            await holder.send(Self.start)
            #expect(await other.next("ENTER_PIN") != nil)
            _ = await holder.next("INSERT_CARD")
        }
    }

    @Test("a user who holds a card gets a second one after a user who has none")
    func secondReader() async throws {
        let server = try await TestServer(readers: 2)
        let greedy = try await waiting(server, 1001)
        let more = try await waiting(server, 1001)
        let other = try await waiting(server, 1002)
        try await server.insert()
        _ = await greedy.next("ENTER_PIN")
        try await server.insert(into: "Simulator 2")
        #expect(await other.next("ENTER_PIN") != nil)
        withExtendedLifetime(more) {}
    }

    @Test("a workflow that loses its card keeps its place ten times")
    func lost() async throws {
        let server = try await Self.server()
        let first = try await waiting(server, 1001)
        try await server.insert()
        _ = await first.next("ENTER_PIN")
        let second = try await waiting(server, 1002)
        for _ in 0..<10 {
            await server.withdraw()
            _ = await first.next("INSERT_CARD")
            try await server.insert()
            _ = await first.next("ENTER_PIN")
        }
        await server.withdraw()
        _ = await first.next("INSERT_CARD")
        try await server.insert()
        #expect(await second.next("ENTER_PIN") != nil)
    }

    @Test("a reading has its place between the users, who start again")
    func reading() async throws {
        let (server, reader) = try await Self.desk()
        reader.insert()
        let holder = try server.connect(uid: 1001)
        _ = await holder.ask(Self.start, "ENTER_PIN")
        let second = try server.connect(uid: 1002)
        _ = await second.ask(Self.start, "INSERT_CARD")
        let desk = try #require(server.registry[HeldReader.name])
        let insertion = try #require(desk.insertion)
        let reading = Task.immediate { @Loop in await server.registry.lendForReading(desk, insertion) }
        let third = try server.connect(uid: 1003)
        _ = await third.ask(Self.start, "INSERT_CARD")
        _ = await holder.ask(Self.cancel, "CHANGE_PIN")
        await holder.send(Self.start)
        _ = await second.next("ENTER_PIN")
        _ = await second.ask(Self.cancel, "CHANGE_PIN")
        await second.send(Self.start)
        let lease = try #require(await reading.value)
        #expect(holders(server).isEmpty)
        await lease.release(removingVirtualCard: false)
        #expect(await third.next("ENTER_PIN") != nil)
        withExtendedLifetime([holder, second]) {}
    }

    @Test("a device that gives a card back does not get it again before a user who waits")
    func lending() async throws {
        let (server, reader) = try await Self.desk()
        reader.insert()
        let observer = try server.connect(uid: 9)
        while server.registry.shownCard(in: HeldReader.name) == nil { await server.registry.nextChange() }
        let device = ObjectIdentifier(reader)
        let lease = try await server.registry.lend(HeldReader.name, to: device, called: "phone")
        let user = try server.connect(uid: 1001)
        let told = await user.ask(Self.start, "INSERT_CARD")
        #expect(told?["error"]?.string?.contains("'phone'") == true)
        await lease.release(removingVirtualCard: false)
        // In the same turn of the loop, so the workflow has not looked yet.
        await #expect(throws: CardError.exclusive) {
            _ = try await server.registry.lend(HeldReader.name, to: device, called: "phone")
        }
        #expect(await user.next("ENTER_PIN") != nil)
        withExtendedLifetime(observer) {}
    }

    // MARK: Questions

    @Test("a question that nobody answers ends soon after another user begins to wait, and costs no try")
    func unanswered() async throws {
        let server = try await Self.server(.milliseconds(1))
        let holder = try await waiting(server, 1001)
        try await server.insert()
        _ = await holder.next("ENTER_PIN")
        // Nobody else waits: its own workflows do not count.
        let own = try await waiting(server, 1001)
        #expect(holders(server).map { $0.workflow?.isAwaited } == [false])
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

    @Test("more questions do not get more time, and the time runs only while another user waits")
    func manyQuestions() async throws {
        let server = try await Self.server()
        let client = try await waiting(server, 1001)
        try await server.insert()
        _ = await client.next("ENTER_PIN")
        let workflow = try #require(holders(server).first?.workflow)
        #expect(workflow.sharedSince == nil)
        let other = try await waiting(server, 1002)
        #expect(workflow.sharedSince != nil)
        // As if it had taken this time.
        workflow.sharedSince = Loop.now - 599_999
        _ = await client.ask(#"{"cmd":"SET_PIN","value":"111111"}"#, "ENTER_PIN")
        #expect(workflow.sharedTime >= 599_999)
        let end = await client.next("CHANGE_PIN")
        #expect(end?["reason"]?.string == "Prompt_Timeout")
        withExtendedLifetime(other) {}
    }

    @Test("when the other user waits no longer, a question has its usual time")
    func alone() async throws {
        let server = try await Self.server()
        let client = try await waiting(server, 1001)
        try await server.insert()
        _ = await client.next("ENTER_PIN")
        let other = try await waiting(server, 1002)
        let workflow = try #require(holders(server).first?.workflow)
        #expect(workflow.isAwaited)
        _ = await other.ask(Self.cancel, "CHANGE_PIN")
        #expect(!workflow.isAwaited)
        #expect(workflow.sharedSince == nil)
        withExtendedLifetime(client) {}
    }

    @Test("a card that writes is not interrupted, although the time is over and another user waits")
    func write() async throws {
        let (server, reader) = try await Self.desk(.milliseconds(1))
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

    // MARK: SET_CARD

    @Test("cards of SET_CARD take turns by user, although one user sends it without end")
    func virtualCards() async throws {
        let server = try await Self.server(.milliseconds(1))
        var flood: [TestClient] = []
        for _ in 0..<5 { flood.append(try await waiting(server, 1001)) }
        _ = await flood[0].ask(Self.setCard, "ENTER_PIN")
        for client in flood[1...] { _ = await client.ask(Self.setCard, "INSERT_CARD") }
        let other = try server.connect(uid: 1002)
        let busy = await other.ask(Self.start, "INSERT_CARD")
        #expect(busy?["error"]?.string?.contains("busy in another client's workflow") == true)
        await other.send(Self.setCard)
        #expect(await other.next("ENTER_PIN") != nil)
        // Each of the flood has its turn, before or afterwards, in any order.
        let turns = flood[1...].map { client in
            Task { @Loop in
                _ = await client.next("ENTER_PIN")
                await client.send(Self.cancel)
                return await client.next("CHANGE_PIN")
            }
        }
        for turn in turns { #expect(await turn.value != nil) }
    }

    @Test("a card of SET_CARD for a busy reader is inserted when its turn comes, and not after its workflow")
    func postponed() async throws {
        let server = try await Self.server()
        let holder = try await waiting(server, 1001)
        _ = await holder.ask(Self.setCard, "ENTER_PIN")
        let gone = try await waiting(server, 1002)
        _ = await gone.ask(Self.setCard, "INSERT_CARD")
        let next = try await waiting(server, 1003)
        _ = await next.ask(Self.setCard, "INSERT_CARD")
        _ = await gone.ask(Self.cancel, "CHANGE_PIN")
        _ = await holder.ask(Self.cancel, "CHANGE_PIN")
        #expect(await next.next("ENTER_PIN") != nil)
        _ = await next.ask(Self.cancel, "CHANGE_PIN")
        await server.released("Simulator")
        #expect(server.registry["Simulator"]?.insertion == nil)
    }

    @Test("cards of SET_CARD that come at once are inserted one after another, and each goes to its workflow")
    func together() async throws {
        let server = try await Self.server()
        var clients: [TestClient] = []
        for uid: UInt32 in 1001...1006 { clients.append(try await waiting(server, uid)) }
        for client in clients { await client.send(Self.setCard) }
        let observer = try server.connect(uid: 9)
        var users: [UInt32?] = []
        for _ in clients {
            while holders(server).isEmpty, !Task.isCancelled { _ = await observer.exchange() }
            #expect(holders(server).count == 1)
            users.append(holders(server).first?.uid)
            holders(server).first?.workflow?.cancel()
            await server.released("Simulator")
        }
        #expect(Set(users) == Set(1001...1006))
        withExtendedLifetime(clients) {}
    }
}
