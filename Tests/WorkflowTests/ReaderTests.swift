// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import VirtualEID

/// Tests the choice of the reader, and concurrent workflows.
@Suite("Readers", .timeLimit(.minutes(5)))
struct ReaderTests {
    @Test("without a reader name the first reader with a usable card is used, in alphabetical order")
    @Loop func firstByName() async throws {
        let server = try await TestServer.started(readers: ["Simulator", "Simulator 2", "Simulator 3"])
        let user = try await ScriptedClient(server, reader: "Simulator 3")
        let second = try await ScriptedClient(server, reader: "Simulator 2")
        try await server.insert(.card(), into: "Simulator 3")
        try await user.play("< READER 3")
        try await server.insert(.card { $0.retryCounter = 2 }, into: "Simulator 2")
        try await second.play("< READER 2")
        try await user.play(
            """
            > RUN_CHANGE_PIN any
            < CHANGE_PIN
            < ENTER_PIN 2 at Simulator 2
            \(Script.cancelledInPlace)
            """
        )
    }

    @Test("a workflow with a reader name uses only this reader")
    @Loop func named() async throws {
        let server = try await TestServer.started(readers: ["Simulator", "Simulator 2"])
        let first = try await ScriptedClient(server)
        let user = try await ScriptedClient(server, reader: "Simulator 2")
        try await server.insert(.card(), into: "Simulator")
        try await first.play("< READER 3")
        try await user.play(
            """
            \(Script.asked)
            > SET_CARD {"retryCounter":2}
            \(Script.asksPIN(2))
            \(Script.cancelled)
            """
        )
        await first.isQuiet()
        #expect(await server.cardState("Simulator")?.apdus == 7)
    }

    @Test("a missing reader is reported, and the workflow waits for it")
    @Loop func unknownReader() async throws {
        let card = try VirtualCard()
        let backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
        let server = try await TestServer(readers: 0, backends: [backend])
        let user = try await ScriptedClient(server, reader: "Desk")
        try await user.play(
            """
            \(Script.begun)
            < INSERT_CARD unknownReader
            """
        )
        backend.add(ReaderDescription(name: "Desk"))
        try await user.play("< READER -")
        backend.insert(into: "Desk")
        try await user.play(
            """
            \(Script.asksPIN())
            \(Script.cancelledInPlace)
            """
        )
    }

    @Test("a reader name that is not a string is refused, and no workflow starts")
    @Loop func invalidName() async throws {
        let user = try await ScriptedClient(.started())
        try await user.play(
            """
            > {"cmd":"RUN_CHANGE_PIN","reader":7}
            < CHANGE_PIN: Invalid name
            > CANCEL
            < BAD_STATE CANCEL
            """
        )
    }

    @Test("two workflows on two readers do not disturb each other")
    @Loop func independent() async throws {
        let server = try await TestServer.started(readers: ["Simulator", "Simulator 2"])
        let first = try await ScriptedClient(server, reader: "Simulator")
        let second = try await ScriptedClient(server, reader: "Simulator 2")
        for user in [first, second] {
            try await user.play(
                """
                \(Script.asked)
                > SET_CARD {}
                \(Script.asksPIN())
                """
            )
        }
        try await first.play(
            """
            \(Script.wrongPIN(left: 2))
            """
        )
        try await second.play(Script.rightPIN)
        try await first.play(Script.cancelled)
        try await second.play(Script.changed)
        await first.isQuiet()
        await second.isQuiet()
        #expect(await server.cardState("Simulator")?.retryCounter == 2)
        #expect(await server.hasPIN("123456", "Simulator"))
        #expect(await server.hasPIN("654321", "Simulator 2"))
    }

    @Test("a reader in another workflow is reported as busy and used when it is free")
    @Loop func busy() async throws {
        let recorder = try RecordingReaders(plugged: ["Simulator"])
        let server = try await TestServer.started(recorder)
        let first = try await ScriptedClient(server)
        let second = try await ScriptedClient(server)
        #expect(try await recorder.insert(VirtualEIDDescription.card(), into: "Simulator"))
        try await first.play(
            """
            < READER 3
            > RUN_CHANGE_PIN any
            < CHANGE_PIN
            < ENTER_PIN 3
            """
        )
        try await second.play(
            """
            < READER 3
            < READER 3 busy
            > RUN_CHANGE_PIN any
            < CHANGE_PIN
            < INSERT_CARD busy
            > SET_PIN 123456
            < BAD_STATE SET_PIN
            """
        )
        try await first.play(
            """
            \(Script.rightPIN)
            > CANCEL
            <~ CHANGE_PIN false User_Cancelled
            <~ READER 3 busy
            """
        )
        try await second.play(
            """
            \(Script.asksPIN())
            \(Script.rightPIN)
            \(Script.changedInPlace)
            """
        )
    }
}
