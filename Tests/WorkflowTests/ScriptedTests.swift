// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ISO7816
import Readers
import ReadersVirtual
import Secrets
import Synchronization
import TestSupport
import Testing
import Text

@testable import EIDFeature

/// What a reader can do to a workflow that a virtual one never does.
@Suite("Misfortunes of readers", .timeLimit(.minutes(5)))
struct ScriptedTests {
    private static let desk = ReaderDescription(name: "Desk")

    /// What connections and commands come to, until the test changes it.
    private final class Trouble: Sendable {
        private let state = Mutex(State())

        private struct State {
            var connect: CardError?
            var transmit: (CardError, times: Int, isFor: @Sendable (CommandAPDU) -> Bool)?
        }

        func connecting(_ error: CardError?) { state.withLock { $0.connect = error } }

        func transmitting(
            _ error: CardError,
            times: Int = 1,
            when isFor: @escaping @Sendable (CommandAPDU) -> Bool = { _ in true }
        ) {
            state.withLock { $0.transmit = (error, times, isFor) }
        }

        func connect(to card: VirtualCard) throws(CardError) -> any CardConnection {
            if let error = state.withLock({ $0.connect }) { throw error }
            return ScriptedConnection(to: card) { [self] command throws(CardError) in
                if let error = due(command) { throw error }
            }
        }

        private func due(_ command: CommandAPDU) -> CardError? {
            state.withLock { state in
                guard let (error, times, isFor) = state.transmit, times > 0, isFor(command) else { return nil }
                state.transmit = (error, times - 1, isFor)
                return error
            }
        }
    }

    /// A reader with a card in it, and a client.
    @Loop private struct Set {
        let card: VirtualCard
        let trouble = Trouble()
        let backend: ScriptedReaders
        let scene: Scene

        init(_ description: ReaderDescription = desk) async throws {
            let (card, trouble) = (try VirtualCard(), trouble)
            self.card = card
            backend = ScriptedReaders { _ throws(CardError) in try trouble.connect(to: card) }
            backend.add(description)
            let server = try await TestServer.stage(backend, readers: [description.name])
            scene = try await Scene(server, reader: description.name)
        }
    }

    private static let change = """
        < ENTER_PIN 3
        > SET_PIN 123456
        < ENTER_NEW_PIN 3
        > SET_NEW_PIN 654321
        < CHANGE_PIN true
        """

    @Test("a card that another program holds is explained, and looked at again when it is free")
    @Loop func exclusive() async throws {
        let set = try await Set()
        set.trouble.connecting(.exclusive)
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            < READER ?
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            < INSERT_CARD exclusive
            """
        )
        await set.scene.isQuiet()
        set.trouble.connecting(nil)
        set.backend.change(Self.desk)
        try await set.scene.play("< READER 3\n" + Self.change)
    }

    @Test("a known card that another program takes is explained, and taken when it is free")
    @Loop func exclusiveLater() async throws {
        let set = try await Set()
        set.backend.insert(into: "Desk")
        try await set.scene.play("< READER 3")
        set.trouble.connecting(.exclusive)
        try await set.scene.play(
            """
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            < READER ?
            < INSERT_CARD exclusive
            """
        )
        set.trouble.connecting(nil)
        set.backend.change(Self.desk)
        try await set.scene.play("< READER 3\n" + Self.change)
    }

    @Test("refused access is explained")
    @Loop func accessDenied() async throws {
        let set = try await Set()
        set.trouble.connecting(.accessDenied)
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            < READER ?
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            < INSERT_CARD accessDenied
            > CANCEL
            < CHANGE_PIN false User_Cancelled
            """
        )
    }

    @Test("a service that goes and comes back while the PIN is asked for: the card is asked for, then it goes on")
    @Loop func serviceRestarted() async throws {
        let set = try await Set()
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            < READER 3
            > RUN_CHANGE_PIN any
            < CHANGE_PIN
            < ENTER_PIN 3
            """
        )
        set.trouble.connecting(.serviceUnavailable)
        set.trouble.transmitting(.serviceUnavailable, times: .max)
        set.backend.report([HealthCheck("pcscd", ok: false, advice: "start it")])
        set.backend.remove("Desk")
        try await set.scene.play(
            """
            < READER gone
            < INSERT_CARD
            > SET_PIN 123456
            < BAD_STATE SET_PIN
            """
        )
        await set.scene.isQuiet()
        set.trouble.connecting(nil)
        set.trouble.transmitting(.serviceUnavailable, times: 0)
        set.backend.report([HealthCheck("pcscd", ok: true)])
        set.backend.add(Self.desk)
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            <~ READER -
            <~ READER 3
            """ + "\n" + Self.change
        )
        #expect(await set.card.state.judgedPINs == 1)
    }

    @Test("a service that goes in the middle of PACE: the card is asked for, the PIN is not used again")
    @Loop func serviceGoneInPACE() async throws {
        let set = try await Set()
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            < READER 3
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            < ENTER_PIN 3
            """
        )
        let backend = set.backend
        set.trouble.transmitting(.serviceUnavailable) { command in
            if command.isToken { backend.remove("Desk") }
            return command.isToken
        }
        try await set.scene.play(
            """
            > SET_PIN 123456
            <~ READER gone
            <~ INSERT_CARD unknownReader
            """
        )
        #expect(await set.card.state.judgedPINs == 0)
        set.backend.add(Self.desk)
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            <~ READER -
            <~ READER 3
            """ + "\n" + Self.change
        )
        #expect(await set.card.state.judgedPINs == 1)
    }

    @Test("a card that another program resets in PACE is asked for its PIN again", arguments: 0..<5)
    @Loop func resetInPACE(step: Int) async throws {
        let set = try await Set()
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            < READER 3
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            < ENTER_PIN 3
            """
        )
        let count = Mutex(0)
        set.trouble.transmitting(.reset) { _ in
            count.withLock { count in
                count += 1
                return count == step + 1
            }
        }
        try await set.scene.play("> SET_PIN 123456\n" + Self.change)
        #expect(await set.card.state.judgedPINs == 1)
    }

    @Test("a card that does not answer the first look is looked at again, unnoticed", arguments: 0..<7)
    @Loop func identifiedAtSecondTry(index: Int) async throws {
        let set = try await Set()
        let count = Mutex(0)
        set.trouble.transmitting(.mute) { _ in
            count.withLock { count in
                count += 1
                return count == index + 1
            }
        }
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            < READER 3
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            """ + "\n" + Self.change
        )
    }

    @Test("a card that never answers is explained; put in again it works")
    @Loop func mute() async throws {
        let set = try await Set()
        set.trouble.transmitting(.mute, times: 2)
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            < READER ?
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            < INSERT_CARD mute
            """
        )
        set.backend.withdraw(from: "Desk")
        try await set.scene.play("< READER -")
        set.backend.insert(into: "Desk")
        try await set.scene.play("< READER 3\n" + Self.change)
    }

    @Test("a reader without extended length changes a PIN as any other")
    @Loop func shortReader() async throws {
        let set = try await Set(ReaderDescription(name: "Desk", hasExtendedLength: false))
        set.trouble.transmitting(.tooLong) { $0.isExtended }
        set.backend.insert(into: "Desk")
        try await set.scene.play(
            """
            < READER 3
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            """ + "\n" + Self.change
        )
    }

    @Test("a workflow that needs extended length explains why it passes a reader over")
    @Loop func needsExtendedLength() async throws {
        let card = try VirtualCard()
        let backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
        backend.add(ReaderDescription(name: "Desk", hasExtendedLength: false))
        let server = try await TestServer.stage(backend, readers: ["Desk"])
        let client = try server.connect()
        backend.insert(into: "Desk")
        _ = try #require(
            await client.ask(#"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#, "ACCESS_RIGHTS")
        )
        let message = try #require(await client.ask(#"{"cmd":"ACCEPT"}"#, "INSERT_CARD"))
        #expect(message["reader"] == .string("Desk"))
        #expect(message["error"]?.string?.contains("extended length") == true)
        client.close()
        await server.clients(0)
    }
}
