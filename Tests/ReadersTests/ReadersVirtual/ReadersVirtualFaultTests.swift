// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import VirtualEID

@Suite("faults of a virtual card", .timeLimit(.minutes(5)))
struct FaultTests {
    private static let command = "00B09E0000"
    private static let whole = 90 + 2

    @Test("a fault affects only the command with its number, and only once", arguments: [0, 1, 5, 17])
    func once(index: Int) async throws {
        var description = VirtualEIDDescription()
        description.options.faults = [.init(afterAPDU: index, action: .status(StatusWord(0x6F00)))]
        let card = try VirtualCard(description)
        var answers: [String] = []
        for _ in 0...(index + 3) { answers.append(try await card.send(Self.command)) }
        #expect(answers.indices.filter { answers[$0] == "6F00" } == [index])
        #expect(answers.count { $0.count == Self.whole * 2 } == answers.count - 1)
    }

    @Test("a fault counts commands since the insertion, across resets")
    func overResets() async throws {
        var description = VirtualEIDDescription()
        description.options.faults = [.init(afterAPDU: 2, action: .mute)]
        let card = try VirtualCard(description)
        _ = try await card.send(Self.command)
        await card.reset()
        _ = try await card.send(Self.command)
        await card.reset()
        #expect(await card.exchange(hex(Self.command)) == .mute)
        #expect(await card.apdus == 3)
    }

    @Test("the command count starts again with the next insertion")
    func nextInsertion() async throws {
        var description = VirtualEIDDescription()
        description.options.faults = [
            .init(afterAPDU: 1, action: .mute), .init(afterAPDU: 1, action: .status(StatusWord(0x6982))),
        ]
        let card = try VirtualCard(description)
        var replies: [VirtualCard.Reply] = []
        for insertion in [1, 1, 1, 2, 2, 2] as [UInt64] {
            replies.append(await card.exchange(hex("00C0"), insertion: insertion))
        }
        let usual = VirtualCard.Reply.answer([0x67, 0x00])
        #expect(replies == [usual, .mute, usual, usual, .answer([0x69, 0x82]), usual])
        // A command for an ended insertion does not reach the card.
        #expect(await card.exchange(hex(Self.command), insertion: 1) == .removed)
    }

    @Test("each fault has its defined effect")
    func actions() async throws {
        func card(_ action: VirtualCardFault.Action) throws -> VirtualCard {
            var description = VirtualEIDDescription()
            description.options.faults = [.init(afterAPDU: 0, action: action)]
            return try VirtualCard(description)
        }
        #expect(try await card(.remove).exchange(hex(Self.command)) == .removed)
        #expect(try await card(.removeAfter).exchange(hex(Self.command)) == .removed)
        #expect(try await card(.mute).exchange(hex(Self.command)) == .mute)
        #expect(try await card(.status(StatusWord(0x6988))).send(Self.command) == "6988")
        let usual = try await VirtualCard().send(Self.command)
        #expect(try await card(.truncate).send(Self.command) == String(usual.prefix(Self.whole)))
        #expect(try await card(.truncate).send("00C00000") == "6D")
        let garbage = try await card(.garbage).send(Self.command)
        #expect(garbage.count == usual.count)
        #expect(garbage != usual)
        #expect(try await card(.muteAfter).exchange(hex(Self.command)) == .mute)
        #expect(try await card(.statusAfter(StatusWord(0x6982))).send(Self.command) == "6982")
        let (flipped, real) = (hex(try await card(.flipBit).send(Self.command)), hex(usual))
        #expect(flipped == real.dropLast(3) + [real[real.count - 3] ^ 1, 0x90, 0x00])
        #expect(try await card(.flipBit).send("00C00000") == "6D01")
        #expect(try await card(.replay).send(Self.command) == "9000")
    }

    @Test("a replayed answer is that of the command before, of this insertion")
    func replay() async throws {
        var description = VirtualEIDDescription()
        description.options.faults = [.init(afterAPDU: 2, action: .replay), .init(afterAPDU: 0, action: .replay)]
        let card = try VirtualCard(description)
        func answer(_ command: String, insertion: UInt64) async -> VirtualCard.Reply {
            await card.exchange(hex(command), insertion: insertion)
        }
        #expect(await answer("00C00000", insertion: 1) == .answer([0x90, 0x00]))
        let first = await answer(Self.command, insertion: 1)
        #expect(await answer("00C00000", insertion: 1) == first)
        #expect(await answer("00C00000", insertion: 1) == .answer([0x6D, 0x00]))
        #expect(await answer(Self.command, insertion: 2) == first)
    }

    @Test(
        "the kind of fault decides whether the command is executed",
        arguments: [
            (VirtualCardFault.Action.remove, false), (.mute, false), (.status(.ok), false),
            (.removeAfter, true), (.truncate, true), (.garbage, true), (.muteAfter, true),
            (.statusAfter(StatusWord(0x6F00)), true), (.flipBit, true), (.replay, true),
        ]
    )
    func execution(action: VirtualCardFault.Action, isExecuted: Bool) async throws {
        var description = VirtualEIDDescription()
        description.options.faults = [.init(afterAPDU: 0, action: action)]
        let card = try VirtualCard(description)
        // The file is selected only if the command was executed.
        _ = await card.exchange(hex("00A4020C02011C"))
        #expect(try await card.status("00B0000000") == (isExecuted ? "9000" : "6A82"))
    }

    @Test("every answer is delayed by the latency of the description")
    func latency() async throws {
        var description = VirtualEIDDescription()
        description.options.latency = 60
        let card = try VirtualCard(description)
        let clock = ContinuousClock()
        #expect(try await clock.measure { _ = try await card.send(Self.command) } >= .milliseconds(60))
    }
}
