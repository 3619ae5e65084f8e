// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ISO7816
import Readers
import ReadersVirtual
import Synchronization
import TestSupport
import Testing
import Text
import VirtualEID

@testable import EIDFeature

/// Tests reader failures that virtual readers cannot produce.
@Suite("Reader failures", .timeLimit(.minutes(5)))
@Loop struct ScriptedTests {
    private let fixture: Fixture

    init() async throws { fixture = try await Fixture() }

    private static let desk = ReaderDescription(name: "Desk")

    /// The errors of connections and commands, which the test sets.
    private final class Failures: Sendable {
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

        /// Lets the command with this number fail, counted from 0.
        func transmitting(_ error: CardError, at number: Int) {
            let count = Mutex(0)
            transmitting(error) { _ in
                count.withLock { count in
                    count += 1
                    return count == number + 1
                }
            }
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

    /// A reader with a card, and a client.
    @Loop private struct Fixture {
        let card: VirtualCard
        let failures = Failures()
        let backend: ScriptedReaders
        let user: ScriptedClient

        init(_ description: ReaderDescription = desk) async throws {
            let (card, failures) = (try VirtualCard(), failures)
            self.card = card
            backend = ScriptedReaders { _ throws(CardError) in try failures.connect(to: card) }
            backend.add(description)
            let server = try await TestServer.started(backend, readers: [description.name])
            user = try await ScriptedClient(server, reader: description.name)
        }

        /// Inserts the card, and begins a PIN change up to the question for the PIN.
        func insertAndAsk() async throws {
            backend.insert(into: "Desk")
            try await user.play("< READER 3\n\(Script.askedPINAtOnce)")
        }
    }

    private static let change = """
        < ENTER_PIN 3
        \(Script.rightPIN)
        \(Script.changedInPlace)
        """

    @Test("a card in exclusive use by another program is reported, and used when it is free", arguments: [false, true])
    func exclusive(isIdentified: Bool) async throws {
        if !isIdentified { fixture.failures.connecting(.exclusive) }
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play(isIdentified ? "< READER 3" : "< READER ?")
        fixture.failures.connecting(.exclusive)
        try await fixture.user.play(
            """
            \(Script.begun)
            < INSERT_CARD exclusive
            """
        )
        await fixture.user.isQuiet()
        fixture.failures.connecting(nil)
        fixture.backend.change(Self.desk)
        try await fixture.user.play((isIdentified ? "" : "< READER 3\n") + Self.change)
    }

    @Test("refused access is reported")
    func accessDenied() async throws {
        fixture.failures.connecting(.accessDenied)
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play(
            """
            < READER ?
            \(Script.begun)
            < INSERT_CARD accessDenied
            \(Script.cancelledInPlace)
            """
        )
    }

    @Test("a restart of the service during ENTER_PIN requests the card again, then the workflow continues")
    func serviceRestarted() async throws {
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play(
            """
            < READER 3
            > RUN_CHANGE_PIN any
            < CHANGE_PIN
            < ENTER_PIN 3
            """
        )
        fixture.failures.connecting(.serviceUnavailable)
        fixture.failures.transmitting(.serviceUnavailable, times: .max)
        fixture.backend.report([HealthCheck("pcscd", ok: false, advice: "start it")])
        fixture.backend.remove("Desk")
        try await fixture.user.play(
            """
            < READER gone
            < INSERT_CARD
            > SET_PIN 123456
            < BAD_STATE SET_PIN
            """
        )
        await fixture.user.isQuiet()
        fixture.failures.connecting(nil)
        fixture.failures.transmitting(.serviceUnavailable, times: 0)
        fixture.backend.report([HealthCheck("pcscd", ok: true)])
        fixture.backend.add(Self.desk)
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play(
            """
            <~ READER -
            <~ READER 3
            \(Self.change)
            """
        )
        #expect(await fixture.card.eidState?.judgedPINs == 1)
    }

    @Test("a stop of the service during PACE requests the card again, and the PIN is not reused")
    func serviceGoneInPACE() async throws {
        try await fixture.insertAndAsk()
        let backend = fixture.backend
        fixture.failures.transmitting(.serviceUnavailable) { command in
            if command.isToken { backend.remove("Desk") }
            return command.isToken
        }
        try await fixture.user.play(
            """
            > SET_PIN 123456
            <~ READER gone
            <~ INSERT_CARD unknownReader
            """
        )
        #expect(await fixture.card.eidState?.judgedPINs == 0)
        fixture.backend.add(Self.desk)
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play(
            """
            <~ READER -
            <~ READER 3
            \(Self.change)
            """
        )
        #expect(await fixture.card.eidState?.judgedPINs == 1)
    }

    @Test("a reset by another program during PACE repeats the question for the PIN", arguments: 0..<5)
    func resetInPACE(step: Int) async throws {
        try await fixture.insertAndAsk()
        fixture.failures.transmitting(.reset, at: step)
        try await fixture.user.play("> SET_PIN 123456\n" + Self.change)
        #expect(await fixture.card.eidState?.judgedPINs == 1)
    }

    @Test("a failed identification is repeated without a message to the client", arguments: 0..<7)
    func identifiedAtSecondTry(index: Int) async throws {
        fixture.failures.transmitting(.mute, at: index)
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play(
            """
            < READER 3
            \(Script.begun)
            \(Self.change)
            """
        )
    }

    @Test("a card that never answers is reported, and works after it is inserted again")
    func mute() async throws {
        fixture.failures.transmitting(.mute, times: 2)
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play(
            """
            < READER ?
            \(Script.begun)
            < INSERT_CARD mute
            """
        )
        fixture.backend.withdraw(from: "Desk")
        try await fixture.user.play("< READER -")
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play("< READER 3\n" + Self.change)
    }

    @Test("a reader without extended length can change the PIN")
    func shortReader() async throws {
        let fixture = try await Fixture(ReaderDescription(name: "Desk", hasExtendedLength: false))
        fixture.failures.transmitting(.tooLong) { $0.isExtended }
        fixture.backend.insert(into: "Desk")
        try await fixture.user.play(
            """
            < READER 3
            \(Script.begun)
            \(Self.change)
            """
        )
    }

    @Test("a workflow that needs extended length reports an unsuitable reader")
    func needsExtendedLength() async throws {
        let card = try VirtualCard()
        let backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
        backend.add(ReaderDescription(name: "Desk", hasExtendedLength: false))
        let server = try await TestServer.started(backend, readers: ["Desk"])
        let client = try server.connect()
        backend.insert(into: "Desk")
        // A card that is not recognised yet would be waited for without an explanation.
        while try #require(await client.next("READER"))["card"] == .null {}
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
