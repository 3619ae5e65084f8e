// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import ISO7816
package import Readers
package import Text

/// The software of a virtual card. Each kind of card has its own.
package protocol VirtualCardSoftware: AnyObject {
    /// The historical bytes of the card, at most 15. ISO 7816-4 8.1.1.
    var historicalBytes: [UInt8] { get }

    /// What the reader says when the card comes.
    var answerToReset: [UInt8] { get }

    /// Runs one command APDU. No input makes it trap, and the answer has at least a status word.
    func process(_ command: [UInt8]) -> [UInt8]

    /// Handles the loss of power or a reset by the reader. Channels and rights end; files, keys and counters stay.
    func reset()

    /// The state of the card that may be shown, such as a retry counter; never a secret.
    var counters: [JSON.Member] { get }

    /// How long the card takes for the answer that it has just made, in milliseconds, as when its holder decides.
    var delay: Int { get }
}

extension VirtualCardSoftware {
    package var delay: Int { 0 }

    /// The answer to reset that a reader makes for a contactless card. PC/SC part 3 3.1.3.2.3.
    package var answerToReset: [UInt8] { VirtualCard.answerToReset(historicalBytes) }
}

/// A card in software: bytes in, bytes out, as strict as a real one. Its state lasts as long as the object: a changed
/// PIN stays changed, and a spent try stays spent.
package actor VirtualCard {
    package enum Reply: Sendable, Equatable {
        case answer([UInt8])
        case mute
        /// The card has left the reader, because of a fault or because the insertion has ended.
        case removed
    }

    /// Makes the connection of a reader with a keypad from a plain connection to this card.
    package typealias Keypad = @Sendable (any CardConnection, VirtualCard) -> any KeypadConnection

    package nonisolated let historicalBytes: [UInt8]
    package nonisolated let answerToReset: [UInt8]
    /// nil: the reader that holds this card has no keypad.
    nonisolated let keypad: Keypad?
    package let software: any VirtualCardSoftware
    private let latency: Int
    private var faults: [VirtualCardFault]
    private var random: CardRandom
    /// Command APDUs since the insertion.
    package private(set) var apdus = 0
    private static let ok: [UInt8] = [0x90, 0x00]
    private var insertion: UInt64 = 0
    /// The last answer that left the card in this insertion; the fault `replay` repeats it.
    private var lastAnswer = ok
    private var pause: Task<Void, Never>?

    /// - Parameters:
    ///   - software: what answers the commands.
    ///   - options: latency and faults.
    ///   - random: the bytes of the fault `garbage`.
    ///   - keypad: for a card whose reader has a keypad.
    /// - Throws: `Malformed`, which names the wrong option.
    package init(
        _ software: sending any VirtualCardSoftware,
        _ options: VirtualCardOptions = .init(),
        random: CardRandom = .system,
        keypad: Keypad? = nil
    ) throws(Malformed) {
        try options.check()
        historicalBytes = software.historicalBytes
        answerToReset = software.answerToReset
        self.software = software
        self.random = random
        self.keypad = keypad
        latency = options.latency
        faults = options.faults
    }

    package nonisolated var hasKeypad: Bool { keypad != nil }

    package static func answerToReset(_ historicalBytes: [UInt8]) -> [UInt8] {
        let body = [0x80 | UInt8(historicalBytes.count & 0x0F), 0x80, 0x01] + historicalBytes
        return [0x3B] + body + [body.reduce(0, ^)]
    }

    /// Faults of the description that have not happened yet.
    package var faultsLeft: Int { faults.count }

    /// The number of commands since the insertion, and the counters of the kind.
    package var counters: [JSON.Member] { [.init("apdus", .number(String(apdus)))] + software.counters }

    /// Begins an insertion: commands count from zero, and no channel is left. The first command of an insertion does
    /// the same if it comes before.
    package func enterReader(insertion: UInt64) {
        guard insertion > self.insertion else { return }
        self.insertion = insertion
        apdus = 0
        lastAnswer = Self.ok
        software.reset()
    }

    /// Ends an insertion: a command that waits for its answer ends, and no channel is left.
    package func leaveReader(insertion: UInt64) {
        guard insertion == self.insertion else { return }
        pause?.cancel()
        software.reset()
    }

    /// Ends the wait for an answer that nobody wants any more.
    func hurry() { pause?.cancel() }

    /// Handles power on or a warm reset. The count of commands continues.
    package func reset() { software.reset() }

    /// Runs one command APDU, or the fault that is due.
    ///
    /// `insertion` counts up with each insertion of this card. A command of an insertion that has ended gets no answer.
    package func exchange(_ command: [UInt8], insertion: UInt64 = 1) async -> Reply {
        guard insertion >= self.insertion else { return .removed }
        enterReader(insertion: insertion)
        let due = faults.firstIndex { $0.afterAPDU == apdus }
        let fault = due.map { faults.remove(at: $0).action }
        apdus += 1
        let reply = reply(to: command, fault)
        let time = latency + software.delay
        if time > 0 {
            let pause = Task { @Loop in await Loop.sleep(milliseconds: Int64(time)) }
            self.pause = pause
            await pause.value
        }
        return reply
    }

    private func reply(to command: [UInt8], _ fault: VirtualCardFault.Action?) -> Reply {
        switch fault {
        case .remove: return .removed
        case .mute: return .mute
        case .status(let status): return .answer([status.sw1, status.sw2])
        case nil, .removeAfter, .muteAfter, .statusAfter, .truncate, .garbage, .flipBit, .replay: break
        }
        let (previous, answer) = (lastAnswer, software.process(command))
        lastAnswer = answer
        return switch fault {
        case .removeAfter: .removed
        case .muteAfter: .mute
        case .statusAfter(let status): .answer([status.sw1, status.sw2])
        case .truncate: .answer(Array(answer.prefix(answer.count / 2)))
        case .garbage: .answer((try? random.bytes(answer.count)) ?? [])
        case .flipBit: .answer(Self.flipped(answer))
        case .replay: .answer(previous)
        case nil, .remove, .mute, .status: .answer(answer)
        }
    }

    /// The answer with one bit inverted: the last one of its data, or of its status word if it has no data.
    private static func flipped(_ answer: [UInt8]) -> [UInt8] {
        var answer = answer
        let index = answer.count > 2 ? answer.count - 3 : answer.count - 1
        if answer.indices.contains(index) { answer[index] ^= 1 }
        return answer
    }
}

/// The status word with which a virtual card refuses a command.
package struct RefusedCommand: Error {
    package let status: StatusWord

    package init(_ status: UInt16) { self.status = StatusWord(status) }
}

extension RefusedCommand {
    package static let wrongLength = RefusedCommand(0x6700)
    package static let wrongSignature = RefusedCommand(0x6982)
    package static let wrongState = RefusedCommand(0x6985)
    package static let noApplication = RefusedCommand(0x6A82)
    package static let noData = RefusedCommand(0x6A88)
    package static let wrongParameters = RefusedCommand(0x6B00)
    package static let wrongInstruction = RefusedCommand(0x6D00)
    package static let wrongClass = RefusedCommand(0x6E00)
    package static let failure = RefusedCommand(0x6F00)
}
