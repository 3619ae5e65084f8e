// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import ReadersVirtual
import Server
import Synchronization
import TestSupport
import Testing

@testable import Cards

/// Cards that lie badly and lose their field again and again.
@Suite("Card position", .timeLimit(.minutes(5)))
struct CardPositionTests {
    /// A clock that the test sets.
    private final class ManualClock: Sendable {
        private let time = Mutex(ContinuousClock.now)

        var now: ContinuousClock.Instant { time.withLock { $0 } }

        func advance(by duration: Duration) { time.withLock { $0 += duration } }
    }

    @Test("the tenth loss makes the position bad, however fast")
    func tenLosses() {
        let clock = ManualClock()
        var position = CardPosition { clock.now }
        for _ in 1...9 {
            position.lost()
            #expect(!position.isBad)
        }
        position.lost()
        #expect(position.isBad)
    }

    @Test("more than four seconds after the second loss the next one makes the position bad")
    func fourSeconds() {
        let clock = ManualClock()
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

    /// A card that is silent in PACE for so many times, and a workflow that has begun.
    @Loop private static func scene(losses: Int, level: Int) async throws -> Scene {
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
        let server = try await TestServer.stage(backend, readers: ["Desk"])
        let scene = try await Scene(server, reader: "Desk", level: level)
        backend.insert(into: "Desk")
        try await scene.play("< READER 3\n> RUN_CHANGE_PIN\n< CHANGE_PIN")
        return scene
    }

    private static let lost = "< ENTER_PIN 3\n> SET_PIN 123456\n"

    @Test("after ten losses in PACE the client is told to lay the card down better; CONTINUE goes on")
    @Loop func pause() async throws {
        let scene = try await Self.scene(losses: 19, level: 3)
        try await scene.play(
            String(repeating: Self.lost, count: 10) + """
                < PAUSE BadCardPosition
                > SET_PIN 123456
                < BAD_STATE SET_PIN
                > CONTINUE
                """
        )
        // The count starts again.
        try await scene.play(
            String(repeating: Self.lost, count: 9) + """
                < ENTER_PIN 3
                > SET_PIN 123456
                < ENTER_NEW_PIN 3
                > SET_NEW_PIN 654321
                < CHANGE_PIN true
                """
        )
        await scene.isQuiet()
    }

    @Test("below level 3 there is no PAUSE: it goes on by itself", arguments: [1, 2])
    @Loop func noPause(level: Int) async throws {
        let scene = try await Self.scene(losses: 10, level: level)
        try await scene.play(
            String(repeating: Self.lost, count: 10) + """
                < ENTER_PIN 3
                > CONTINUE
                < BAD_STATE CONTINUE
                > SET_PIN 123456
                < ENTER_NEW_PIN 3
                > CANCEL
                < CHANGE_PIN false User_Cancelled
                """
        )
    }

    @Test("a client that lowers its level in the pause goes on")
    @Loop func levelLowered() async throws {
        let scene = try await Self.scene(losses: 10, level: 3)
        try await scene.play(
            String(repeating: Self.lost, count: 10) + """
                < PAUSE BadCardPosition
                > {"cmd":"SET_API_LEVEL","level":2}
                < API_LEVEL 2
                < ENTER_PIN 3
                > CANCEL
                < CHANGE_PIN false User_Cancelled
                """
        )
    }

    @Test("CANCEL ends the pause and the workflow")
    @Loop func cancelled() async throws {
        let scene = try await Self.scene(losses: 10, level: 3)
        try await scene.play(
            String(repeating: Self.lost, count: 10) + """
                < PAUSE BadCardPosition
                > CANCEL
                < CHANGE_PIN false User_Cancelled
                """
        )
        await scene.isQuiet()
    }

    @Test("a client that goes away in the pause leaves the reader free")
    @Loop func clientGone() async throws {
        let scene = try await Self.scene(losses: 10, level: 3)
        let next = try await Scene(scene.server, reader: "Desk")
        try await scene.play(String(repeating: Self.lost, count: 10) + "< PAUSE BadCardPosition")
        scene.client.close()
        while next.server.server.clientCount > 1 { _ = await next.client.exchange() }
        try await next.play(
            """
            > RUN_CHANGE_PIN
            < CHANGE_PIN
            < ENTER_PIN 3
            > CANCEL
            < CHANGE_PIN false User_Cancelled
            """
        )
    }
}
