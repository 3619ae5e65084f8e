// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import ISO7816
import Readers
import ReadersVirtual
import Server
import Synchronization
import TestSupport
import Testing
import Text
import VirtualEID

/// Programs that give a PIN without a person never take the tries of a card. docs/protocol/eid.md, Automatic answers.
@Suite("PINs without a person", .timeLimit(.minutes(5)))
struct AutomaticPINTests {
    /// A reader that is not virtual for badged, although its card is in software.
    @Loop private struct Desk {
        let card: VirtualCard
        let backend: ScriptedReaders
        let server: TestServer
        let user: ScriptedClient

        init(isAllowed: Bool = true, tries: Int = 3, fault: (@Sendable (CommandAPDU) -> CardError?)? = nil) async throws
        {
            var description = VirtualEIDDescription()
            description.retryCounter = tries
            let card = try VirtualCard(description)
            self.card = card
            backend = ScriptedReaders { _ throws(CardError) in
                ScriptedConnection(to: card) { command throws(CardError) in
                    if let error = fault?(command) { throw error }
                }
            }
            backend.add(ReaderDescription(name: "Desk"))
            server = try await TestServer(readers: 0, backends: [backend], allowsAutomaticPINs: isAllowed)
            await server.ready(["Desk"])
            user = try await ScriptedClient(server, reader: "Desk")
            backend.insert(into: "Desk")
            try await user.play("< READER \(tries)")
        }
    }

    private static let toPIN = AuthenticationTests.accepted

    private static func set(_ pin: String) -> String { #"> {"automatic":true,"cmd":"SET_PIN","value":"\#(pin)"}"# }

    private static let right = set("123456")
    private static let wrong = set("000000")
    private static let cancelled = """
        > CANCEL
        < AUTH error cancellationByUser User_Cancelled \(AuthenticationTests.back)
        """

    private static func refused(_ reason: String) -> String { "No automatic PIN, because \(reason)" }

    private static let fewTries = refused(
        "the card has less than three tries left: prove the PIN by hand, which gives three tries back"
    )
    private static let once = refused("this card got one already: take the card off the reader and put it back")

    @Test("without a line in the configuration a card that is not virtual gets none")
    @Loop func notAllowed() async throws {
        let desk = try await Desk(isAllowed: false)
        let reason = "the card is not virtual: set automatic_pin = yes in [eid] of badged.conf, and restart badged"
        try await desk.user.play(
            """
            \(Self.toPIN)
            < ENTER_PIN 3
            \(Self.right)
            < ENTER_PIN 3: \(Self.refused(reason))
            > SET_PIN 123456
            < \(AuthenticationTests.success)
            """
        )
        #expect(await desk.card.eidState?.judgedPINs == 1)
        #expect(desk.server.notices.contains { $0.contains("the card is not virtual") })
    }

    @Test("with the line it gets one for each insertion")
    @Loop func once() async throws {
        let desk = try await Desk()
        let once = """
            \(Self.toPIN)
            < ENTER_PIN 3
            \(Self.right)
            < \(AuthenticationTests.success)
            """
        try await desk.user.play(once)
        try await desk.user.play(
            """
            \(Self.toPIN)
            < ENTER_PIN 3
            \(Self.right)
            < ENTER_PIN 3: \(Self.once)
            \(Self.cancelled)
            """
        )
        #expect(await desk.card.eidState?.judgedPINs == 1)
        desk.backend.withdraw(from: "Desk")
        try await desk.user.play("< READER -")
        desk.backend.insert(into: "Desk")
        try await desk.user.play("< READER 3\n" + once)
        #expect(await desk.card.eidState?.judgedPINs == 2)
    }

    @Test("after a wrong one no card gets another one, also when the tries are back")
    @Loop func wrong() async throws {
        let desk = try await Desk()
        try await desk.user.play(
            """
            \(Self.toPIN)
            < ENTER_PIN 3
            \(Self.wrong)
            \(Script.asksPIN(2))
            \(Self.right)
            < ENTER_PIN 2: \(Self.fewTries)
            > SET_PIN 123456
            < READER 3
            < \(AuthenticationTests.success)
            """
        )
        desk.backend.withdraw(from: "Desk")
        try await desk.user.play("< READER -")
        desk.backend.insert(into: "Desk")
        try await desk.user.play(
            """
            < READER 3
            \(Self.toPIN)
            < ENTER_PIN 3
            \(Self.right)
            < ENTER_PIN 3: \(Self.refused("an automatic PIN was wrong: correct the PIN, and restart badged"))
            \(Self.cancelled)
            """
        )
        #expect(await desk.card.eidState?.judgedPINs == 2)
    }

    @Test("a card with two tries or one gets none, and no CAN", arguments: [2, 1])
    @Loop func fewTries(tries: Int) async throws {
        let desk = try await Desk(tries: tries)
        try await desk.user.play(Self.toPIN)
        if tries == 1 {
            try await desk.user.play(
                """
                < ENTER_CAN 1
                > {"automatic":true,"cmd":"SET_CAN","value":"500540"}
                < ENTER_CAN 1: No automatic answer: only the PIN of an authentication needs no person
                > SET_CAN 500540
                """
            )
        }
        try await desk.user.play(
            """
            < ENTER_PIN \(tries)
            \(Self.right)
            < ENTER_PIN \(tries): \(Self.fewTries)
            \(Self.cancelled)
            """
        )
        #expect(await desk.card.eidState?.judgedPINs == 0)
        #expect(await desk.card.eidState?.retryCounter == tries)
    }

    @Test("virtual cards get one without a line, as often as they have all tries")
    @Loop func virtual() async throws {
        let server = try await TestServer(service: { _, _ in TestService() })
        let user = try await ScriptedClient(server)
        for _ in 0..<2 {
            try await user.play(
                AuthenticationTests.toPIN + "\n\(Self.right)\n< READER -\n< \(AuthenticationTests.success)"
            )
        }
        try await user.play(
            """
            \(AuthenticationTests.toPIN)
            \(Self.wrong)
            \(Script.asksPIN(2))
            \(Self.wrong)
            < ENTER_PIN 2: \(Self.fewTries)
            > CANCEL
            """
        )
    }

    @Test("a change of the PIN takes none, and a flag of another type is refused")
    @Loop func others() async throws {
        let desk = try await Desk()
        try await desk.user.play(
            """
            \(Script.begun)
            < ENTER_PIN 3
            \(Self.right)
            < ENTER_PIN 3: No automatic answer: only the PIN of an authentication needs no person
            > SET_PIN 123456
            < ENTER_NEW_PIN 3
            > {"automatic":true,"cmd":"SET_NEW_PIN","value":"654321"}
            < ENTER_NEW_PIN 3: No automatic answer: only the PIN of an authentication needs no person
            > CANCEL
            < CHANGE_PIN false User_Cancelled
            """
        )
        await desk.user.client.send(#"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#)
        while let message = await desk.user.client.next(), message["msg"]?.string != "ENTER_PIN" {
            if message["msg"]?.string == "ACCESS_RIGHTS" { await desk.user.client.send(#"{"cmd":"ACCEPT"}"#) }
        }
        await desk.user.client.send(#"{"automatic":"yes","cmd":"SET_PIN","value":"000000"}"#)
        let answer = await desk.user.client.next()
        #expect(answer?["msg"]?.string == "ENTER_PIN")
        #expect(answer?["error"]?.string != nil)
        #expect(await desk.card.eidState?.judgedPINs == 1)
    }

    /// The commands of PACE and of all that follows it.
    private static let faults = FullTables.rows(
        of: (0..<24).flatMap { number in
            [CardError.removed, .reset, .serviceUnavailable].flatMap { error in
                ["123456", "000000"].map { (number: number, error: error, pin: $0) }
            }
        }
    ) { ["\($0.number)", "\($0.error)", $0.pin] }

    @Test("a fault at any command costs at most one try, however often a program repeats the PIN", arguments: faults)
    @Loop func fault(number: Int, error: CardError, pin: String) async throws {
        let count = Mutex(0)
        let isArmed = Mutex(false)
        let desk = try await Desk { _ in
            guard isArmed.withLock({ $0 }) else { return nil }
            return count.withLock { count in
                count += 1
                return count == number + 1 ? error : nil
            }
        }
        isArmed.withLock { $0 = true }
        let client = desk.user.client
        await client.send(#"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#)
        var questions = 0
        var hasEnded = false
        while !hasEnded, let message = await client.next() {
            switch message["msg"]?.string {
            case "ACCESS_RIGHTS": await client.send(#"{"cmd":"ACCEPT"}"#)
            case "INSERT_CARD" where questions < 20:
                questions += 1
                desk.backend.withdraw(from: "Desk")
                desk.backend.insert(into: "Desk")
            case "ENTER_PIN" where questions < 20:
                questions += 1
                await client.send(#"{"automatic":true,"cmd":"SET_PIN","value":"\#(pin)"}"#)
            case "PAUSE": await client.send(#"{"cmd":"CONTINUE"}"#)
            case "INSERT_CARD", "ENTER_PIN", "ENTER_CAN": await client.send(#"{"cmd":"CANCEL"}"#)
            default: hasEnded = message["result"] != nil
            }
        }
        #expect(hasEnded)
        let state = try #require(await desk.card.eidState)
        #expect(state.retryCounter >= 2)
        #expect(pin == "123456" || state.judgedPINs <= 1)
    }
}
