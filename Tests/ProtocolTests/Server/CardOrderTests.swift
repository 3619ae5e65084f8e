// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import ReadersVirtual
import TestSupport
import Testing
import Text

@Suite("Who gets the card", .timeLimit(.minutes(5)))
@Loop struct CardOrderTests {
    private let server: TestServer
    private let clients: [TestClient]

    /// Starts workflows that wait for a card, in the order of the clients.
    init() async throws {
        server = try await TestServer(readers: 2)
        let server = server
        clients = try (0..<8).map { _ in try server.connect() }
        for client in clients { _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") }
    }

    /// The clients whose workflows ask for the PIN.
    private func asked() async -> [Int] {
        var found: [Int] = []
        for (number, client) in clients.enumerated() {
            if await client.answer(to: #"{"cmd":"GET_STATUS"}"#)?["state"] == .string("ENTER_PIN") {
                found.append(number)
            }
        }
        return found
    }

    @Test("a wait for a change ends with its task, whatever else waits, also in a task of a command")
    func cancelledWaits() async {
        // Tasks of commands prefer the share of their user.
        let wait: @Loop () async -> Void = { [registry = server.registry] in await registry.nextChange() }
        let waits = (0..<8).map { _ in Task(executorPreference: Pool.share(of: 1001), operation: wait) }
        for _ in 0..<100 { await Task.yield() }
        for wait in waits.reversed() {
            wait.cancel()
            await wait.value
        }
    }

    @Test("of the clients that wait, the first that asked gets the card, insertion by insertion")
    func firstCome() async throws {
        for number in clients.indices {
            try await server.insert()
            _ = await clients[number].next("ENTER_PIN")
            #expect(await asked() == [number])
            // The end of the workflow removes the card.
            _ = await clients[number].ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        }
    }

    @Test("a client that loses its card gets the next one, before those that asked later")
    func lostCard() async throws {
        for _ in 0..<4 {
            try await server.insert()
            _ = await clients[0].next("ENTER_PIN")
            #expect(await asked() == [0])
            await server.withdraw()
            _ = await clients[0].next("INSERT_CARD")
        }
    }

    @Test("a card of SET_CARD goes to its own workflow, although others asked earlier", arguments: [1, 4, 7])
    func ownCard(number: Int) async throws {
        let client = clients[number]
        _ = await client.ask(#"{"cmd":"SET_CARD","name":"Simulator"}"#, "ENTER_PIN")
        #expect(await asked() == [number])
        // A card in another reader goes to the first.
        try await server.insert(into: "Simulator 2")
        _ = await clients[0].next("ENTER_PIN")
        #expect(await asked() == [0, number])
        _ = await client.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        #expect(await asked() == [0])
    }

    @Test("two cards at once go to the first two, also when the first named a reader")
    func twoCards() async throws {
        let named = try server.connect()
        _ = await clients[0].ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        _ = await named.ask(#"{"cmd":"RUN_CHANGE_PIN","reader":"Simulator 2"}"#, "INSERT_CARD")
        for reader in ["Simulator", "Simulator 2"] { try await server.insert(into: reader) }
        for client in clients[1...2] { _ = await client.next("ENTER_PIN") }
        #expect(await asked() == [1, 2])
        _ = await clients[2].ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        for client in clients[3...] { _ = await client.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN") }
        try await server.insert(into: "Simulator 2")
        #expect(await named.next("ENTER_PIN") != nil)
    }
}
