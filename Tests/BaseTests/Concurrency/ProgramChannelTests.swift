// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import TestSupport
import Testing

@Suite("The socket between two programs of badged", .timeLimit(.minutes(5)))
@Loop struct ProgramChannelTests {
    enum Kind: CaseIterable, Sendable { case packets, lengths }

    private static let maximum = 100_000

    /// One end, with what it has received.
    @Loop private final class End {
        private(set) var channel: ProgramChannel?
        private(set) var messages: [[UInt8]] = []
        private(set) var ending: ProgramChannel.Ending?
        /// With `Framing.lengths`: whether there is room for a message.
        var hasRoom = true { didSet { channel?.resume() } }
        private(set) var refused = 0
        private let waiters = Waiters()

        init(_ socket: Int32, _ kind: Kind, asks: Bool = false) throws {
            let lengths = ProgramChannel.Framing.lengths(
                maximum: { ProgramChannelTests.maximum },
                admits: { [unowned self] _ in
                    if !hasRoom {
                        refused += 1
                        waiters.check()
                    }
                    return hasRoom
                }
            )
            channel = try ProgramChannel(
                socket,
                kind == .packets ? .packets(maximum: ProgramChannelTests.maximum) : lengths,
                asking: "badged-test",
                asks ? Heartbeat.Times() : nil,
                onMessage: { [unowned self] message in
                    messages.append(message)
                    waiters.check()
                    return message != ProgramChannelTests.forbidden
                },
                onEnd: { [unowned self] in
                    ending = $0
                    waiters.check()
                }
            )
        }

        func wait(until condition: @escaping () -> Bool) async { await waiters.wait(until: condition) }
    }

    private static let forbidden: [UInt8] = [66, 66]

    private static func pair(_ kind: Kind, asks: Bool = false) throws -> (End, End) {
        let (first, second) = try rawPair(kind)
        return (try End(first, kind, asks: asks), try End(second, kind))
    }

    private static func rawPair(_ kind: Kind) throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        let type = kind == .packets ? SOCK_SEQPACKET : SOCK_STREAM
        try #require(socketpair(AF_UNIX, Int32(type.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    @Test("messages arrive whole and in order, also more than the socket holds", arguments: Kind.allCases)
    func order(kind: Kind) async throws {
        let (sender, receiver) = try Self.pair(kind)
        let sizes = [1, 2, 5000, Self.maximum, 3] + [Int](repeating: 70_000, count: 40) + [4, 1]
        let messages = sizes.enumerated().map { [UInt8](repeating: UInt8($0.offset + 1), count: $0.element) }
        for message in messages { sender.channel?.send(message) }
        await receiver.wait { receiver.messages.count == messages.count || receiver.ending != nil }
        #expect(receiver.messages == messages)
        #expect(receiver.ending == nil)
        withExtendedLifetime(sender) {}
    }

    @Test("an end that has closed its half still receives, and the other end learns of it", arguments: Kind.allCases)
    func half(kind: Kind) async throws {
        let (first, second) = try Self.pair(kind)
        first.channel?.send([1, 1])
        first.channel?.finish()
        await second.wait { second.ending != nil }
        #expect(second.messages == [[1, 1]])
        #expect(second.ending == .closed)
        await first.wait { first.ending != nil }
        #expect(first.ending == .closed)

        let (third, fourth) = try Self.rawPair(kind)
        let end = try End(third, kind)
        end.channel?.finish()
        let answer: [UInt8] = kind == .packets ? [7, 7] : [0, 0, 0, 2, 7, 7]
        #expect(send(fourth, answer, answer.count, 0) == answer.count)
        await end.wait { !end.messages.isEmpty }
        #expect(end.messages == [[7, 7]])
        close(fourth)
    }

    @Test("a message that is too long or not allowed ends the channel", arguments: Kind.allCases)
    func violations(kind: Kind) async throws {
        for message in [[UInt8](repeating: 1, count: Self.maximum + 1), Self.forbidden] {
            let (sender, receiver) = try Self.pair(kind)
            sender.channel?.send(message)
            await receiver.wait { receiver.ending != nil }
            #expect(receiver.ending == .violation)
            await sender.wait { sender.ending != nil }
            #expect(sender.ending == .closed)
        }
    }

    @Test("a question is answered by the other end, and a closed end answers no more", arguments: Kind.allCases)
    func heartbeat(kind: Kind) async throws {
        let (asking, answering) = try Self.pair(kind, asks: true)
        #expect(await asking.channel?.answers() == true)
        #expect(asking.messages.isEmpty && answering.messages.isEmpty)
        answering.channel?.close()
        #expect(await asking.channel?.answers() == false)
        #expect(answering.ending == nil)
    }

    @Test("a message without room waits until there is room, and the ones behind it with it")
    func room() async throws {
        let (sender, receiver) = try Self.pair(.lengths)
        receiver.hasRoom = false
        sender.channel?.send([1, 2])
        sender.channel?.send([3, 4])
        await receiver.wait { receiver.refused > 0 }
        #expect(receiver.messages.isEmpty)
        receiver.hasRoom = true
        await receiver.wait { receiver.messages.count == 2 }
        #expect(receiver.messages == [[1, 2], [3, 4]])
        withExtendedLifetime(sender) {}
    }
}
