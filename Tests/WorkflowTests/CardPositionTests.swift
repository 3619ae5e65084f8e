// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import ReadersVirtual
import Server
import Synchronization
import TestSupport
import Testing
import VirtualEID

@testable import Cards

/// Tests badly placed cards, which lose contact repeatedly.
@Suite("Card position", .timeLimit(.minutes(5)))
struct CardPositionTests {
    @Test("the tenth loss makes the position bad, at any interval")
    func tenLosses() {
        let clock = StandingClock()
        var position = CardPosition { clock.now }
        for _ in 1...9 {
            position.lost()
            #expect(!position.isBad)
        }
        position.lost()
        #expect(position.isBad)
    }

    @Test("a loss more than four seconds after the second loss makes the position bad")
    func fourSeconds() {
        let clock = StandingClock()
        var position = CardPosition { clock.now }
        position.lost()
        clock.advance(by: .seconds(60))
        position.lost()
        #expect(!position.isBad)
        clock.advance(by: .seconds(4))
        position.lost()
        #expect(!position.isBad)
        clock.advance(by: .milliseconds(1))
        position.lost()
        #expect(position.isBad)
    }

    // MARK: In the dialogue

    /// Starts a workflow with a card that is lost in PACE `losses` times.
    @Loop private static func user(losses: Int, level: Int) async throws -> ScriptedClient {
        let card = try VirtualCard()
        let left = Mutex(losses)
        let backend = ScriptedReaders { _ throws(CardError) in
            ScriptedConnection(to: card) { command throws(CardError) in
                guard command.ins == 0x86 else { return }
                let isLost = left.withLock { left in
                    left -= 1
                    return left >= 0
                }
                if isLost { throw .mute }
            }
        }
        backend.add(ReaderDescription(name: "Desk"))
        let server = try await TestServer.started(backend, readers: ["Desk"])
        let user = try await ScriptedClient(server, reader: "Desk", level: level)
        backend.insert(into: "Desk")
        try await user.play("< READER 3\n> RUN_CHANGE_PIN\n< CHANGE_PIN")
        return user
    }

    private static let lost = "< ENTER_PIN 3\n> SET_PIN 123456\n"

    @Test("after ten losses in PACE the workflow sends PAUSE, and CONTINUE resumes it")
    @Loop func pause() async throws {
        let user = try await Self.user(losses: 19, level: 3)
        try await user.play(
            String(repeating: Self.lost, count: 10) + """
                < PAUSE BadCardPosition
                > SET_PIN 123456
                < BAD_STATE SET_PIN
                > CONTINUE
                """
        )
        // The count starts again.
        try await user.play(
            String(repeating: Self.lost, count: 9) + """
                < ENTER_PIN 3
                \(Script.rightPIN)
                \(Script.changedInPlace)
                """
        )
        await user.isQuiet()
    }

    @Test("below level 3 the workflow continues without PAUSE", arguments: [1, 2])
    @Loop func noPause(level: Int) async throws {
        let user = try await Self.user(losses: 10, level: level)
        try await user.play(
            String(repeating: Self.lost, count: 10) + """
                < ENTER_PIN 3
                > CONTINUE
                < BAD_STATE CONTINUE
                \(Script.rightPIN)
                \(Script.cancelledInPlace)
                """
        )
    }

    @Test("setting a level below 3 during the pause resumes the workflow")
    @Loop func levelLowered() async throws {
        let user = try await Self.user(losses: 10, level: 3)
        try await user.play(
            String(repeating: Self.lost, count: 10) + """
                < PAUSE BadCardPosition
                > {"cmd":"SET_API_LEVEL","level":2}
                < API_LEVEL 2
                < ENTER_PIN 3
                \(Script.cancelledInPlace)
                """
        )
    }
}
