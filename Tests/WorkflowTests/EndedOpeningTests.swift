// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

/// An attempt to open a card that ends from this side says nothing about the card.
@Suite("Workflows that end while their card is opened", .timeLimit(.minutes(5)))
struct EndedOpeningTests {
    /// How the client ends its workflow.
    enum Ending: String, CaseIterable, Sendable {
        case cancelInOneWrite, cancel, close
    }

    /// Where the workflow is at its end.
    enum Place: Hashable, Sendable {
        /// It waits for the connection, because another program holds the card.
        case connect
        /// It waits for the answer to this command.
        case command(Int)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let command: String
        let ending: Ending
        let place: Place
        /// Whether another program holds the card for a moment before the next client comes.
        let isHeldAfter: Bool

        var testDescription: String { "\(command) \(ending) at \(place)" + (isHeldAfter ? ", held after" : "") }
    }

    static let rows: [Row] = FullTables.rows(
        of: ["RUN_CHANGE_PIN any", "RUN_AUTH"].flatMap { command in
            Ending.allCases.flatMap { ending in
                [Place.connect, .command(0), .command(1), .command(2)].flatMap { place in
                    [false, true].map { Row(command: command, ending: ending, place: place, isHeldAfter: $0) }
                }
            }
        }
    ) { ["\($0.command)", "\($0.ending)", "\($0.place)", "\($0.isHeldAfter)"] }

    @Test("the next client gets its question, READER shows the card, and no try is spent", arguments: rows)
    @Loop func ended(row: Row) async throws {
        let card = try VirtualCard()
        let reader = HeldReader(card)
        let server = try await TestServer.started(reader.backend, readers: [HeldReader.name])
        let watcher = try await ScriptedClient(server, reader: HeldReader.name)
        reader.insert()
        try await watcher.play("< READER 3")

        let client = try await ScriptedClient(server, reader: HeldReader.name)
        if row.place == .connect { reader.hold() }
        if case .command(let number) = row.place { reader.holdCommand(number) }
        try await begin(row, client)
        switch row.place {
        case .connect where row.ending != .cancelInOneWrite:
            try await client.play("<? CHANGE_PIN\n< INSERT_CARD exclusive")
        // The workflow has ended before the card gets a command.
        case .command where row.ending == .cancelInOneWrite: break
        case .command: await reader.arrival()
        case .connect: break
        }
        switch row.ending {
        case .cancel: await client.client.send(#"{"cmd":"CANCEL"}"#)
        case .close: client.client.close()
        case .cancelInOneWrite: break
        }
        reader.openGate()
        if row.ending == .close {
            await server.clients(1)
        } else {
            while let message = await client.client.next(), message["success"] == nil, message["result"] == nil {}
        }
        await server.released(HeldReader.name)
        reader.letGo()

        if row.isHeldAfter { reader.hold() }
        let next = try await ScriptedClient(server, reader: HeldReader.name)
        try await next.play(#"> {"cmd":"GET_READER","name":"\#(HeldReader.name)"}"# + "\n< READER 3")
        try await next.play("> RUN_CHANGE_PIN any\n< CHANGE_PIN")
        if row.isHeldAfter {
            try await next.play("< INSERT_CARD exclusive")
            reader.letGo()
        }
        try await next.play("< ENTER_PIN 3")
        #expect(await card.eidState?.judgedPINs == 0)
    }

    @Loop private func begin(_ row: Row, _ client: ScriptedClient) async throws {
        let cancel = row.ending == .cancelInOneWrite ? "\n" + #"{"cmd":"CANCEL"}"# : ""
        guard row.command == "RUN_AUTH" else {
            return await client.client.send(#"{"cmd":"RUN_CHANGE_PIN","status":false}"# + cancel)
        }
        await client.client.send(#"{"cmd":"RUN_AUTH","status":false,"tcTokenURL":"https://dienst.example/t"}"#)
        _ = await client.client.next("ACCESS_RIGHTS")
        await client.client.send(#"{"cmd":"ACCEPT"}"# + cancel)
    }

    @Test("no question is asked if the connections to the servers end as the card is opened")
    @Loop func connectionsEnded() async throws {
        let card = try VirtualCard()
        let backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
        backend.add(ReaderDescription(name: "Desk"))
        let service = TestService()
        let server = try await TestServer(readers: 0, backends: [backend], service: { _, _ in service })
        await server.ready(["Desk"])
        let user = try await ScriptedClient(server, reader: "Desk")
        backend.insert(into: "Desk")
        try await user.play("< READER 3\n> RUN_AUTH\n< AUTH\n< \(AuthenticationTests.rights)")
        backend.onConnect { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                let answer = try await card.answer(command)
                // The last command of the opening reads the state of the PIN.
                if command.ins == 0x22 {
                    service.interrupted.fill(EServiceFailure(.genericSendReceiveNetworkError, .connection))
                }
                return answer
            }
        }
        let end = "trustedChannelEstablishmentFailed Generic_Send_Receive_Network_Error \(AuthenticationTests.back)"
        try await user.play("> ACCEPT\n< AUTH error \(end)")
        await user.isQuiet()
        #expect(!server.isLent("Desk"))
    }

    @Test("a workflow that waits for another program uses a card in another reader")
    @Loop func otherReader() async throws {
        let reader = HeldReader(try VirtualCard())
        let server = try await TestServer(readers: 1, backends: [reader.backend])
        await server.ready(["Simulator", HeldReader.name])
        let client = try await ScriptedClient(server)
        reader.hold()
        reader.insert()
        try await client.play("> RUN_CHANGE_PIN any\n< CHANGE_PIN\n<? INSERT_CARD\n< INSERT_CARD exclusive at Desk")
        try await client.play(
            "> SET_CARD\n< READER 3\n< ENTER_PIN 3\n> CANCEL\n< READER -\n< CHANGE_PIN false User_Cancelled"
        )
        reader.letGo()
        let next = try await ScriptedClient(server, reader: HeldReader.name)
        try await next.play("> RUN_CHANGE_PIN any\n< CHANGE_PIN\n<? INSERT_CARD exclusive\n<? READER 3\n< ENTER_PIN 3")
    }

    @Test("a card that another program holds is an unknown card until it can be recognised")
    @Loop func heldAtFirst() async throws {
        let reader = HeldReader(try VirtualCard())
        let server = try await TestServer.started(reader.backend, readers: [HeldReader.name])
        let client = try await ScriptedClient(server, reader: HeldReader.name)
        reader.hold()
        reader.insert()
        try await client.play("< READER ?\n> RUN_CHANGE_PIN any\n< CHANGE_PIN\n< INSERT_CARD exclusive")
        await client.isQuiet()
        reader.letGo()
        try await client.play("< READER 3\n< ENTER_PIN 3")
    }

    @Test("a card that is held after it was lost in the middle of a dialogue is waited for")
    @Loop func heldAfterLoss() async throws {
        let card = try VirtualCard()
        let reader = HeldReader(card)
        let server = try await TestServer.started(reader.backend, readers: [HeldReader.name])
        let client = try await ScriptedClient(server, reader: HeldReader.name)
        reader.insert()
        try await client.play("< READER 3\n> RUN_CHANGE_PIN any\n< CHANGE_PIN\n< ENTER_PIN 3")
        try await client.play("> SET_PIN 123456\n< ENTER_NEW_PIN 3")
        reader.hold()
        reader.backend.withdraw(from: HeldReader.name)
        try await client.play("< READER -\n< INSERT_CARD")
        reader.insert()
        try await client.play("< READER ?\n< INSERT_CARD exclusive")
        reader.letGo()
        try await client.play("< READER 3\n< ENTER_PIN 3\n> SET_PIN 123456\n< ENTER_NEW_PIN 3")
        try await client.play("> SET_NEW_PIN 654321\n< CHANGE_PIN true")
        #expect(await card.eidState?.retryCounter == 3)
    }

    @Test(
        "what is in the way without an event is tried again while a workflow waits",
        arguments: [
            (CardError.exclusive, "exclusive"), (.accessDenied, "accessDenied"), (.noResources, "noResources"),
        ]
    )
    @Loop func triedAgain(error: CardError, name: String) async throws {
        let card = try VirtualCard()
        let backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
        backend.add(ReaderDescription(name: "Desk"))
        let server = try await TestServer.started(backend, readers: ["Desk"])
        let client = try await ScriptedClient(server, reader: "Desk")
        backend.insert(into: "Desk")
        try await client.play("< READER 3")
        backend.onConnect { _ throws(CardError) in throw error }
        try await client.play("> RUN_CHANGE_PIN any\n< CHANGE_PIN\n< INSERT_CARD \(name)")
        backend.onConnect { _ throws(CardError) in ScriptedConnection(to: card) }
        try await client.play("< ENTER_PIN 3")
    }
}
