// SPDX-License-Identifier: GPL-3.0-or-later

/// Why a card cannot be talked to any more.
package enum BlockError: Error, Sendable, Equatable {
    /// No valid block came, however often it was asked for: the card is gone, or does not keep to the protocol.
    case unresponsive
    /// The card wants more time than any card needs.
    case waitsTooLong
    /// The answer is longer than the longest answer APDU, or comes in more pieces than that takes.
    case endless
    /// A command is begun before the one before it has ended, or has no bytes, or after an error.
    case notReady
}

/// The reader's side (PCD) of the half-duplex block protocol. ISO/IEC 14443-4, 7.
///
/// Pure: it says what to send, and is told what came. Commands and answers of any length go out and come in by chaining;
/// blocks that are lost, broken or doubled are recovered by the rules of 7.5.4 and 7.5.5. Whatever a card sends, the
/// steps for one command are bounded; how long each takes is up to the card, within the time that the step names.
package struct BlockTransmission: Sendable {
    package enum Step: Sendable, Equatable {
        /// Send this frame (CRC not included), and wait so long for the beginning of the answer.
        case send([UInt8], within: Duration)
        /// The whole answer.
        case done([UInt8])
        /// No further command will work.
        case failed(BlockError)
    }

    private enum State: Sendable {
        case ready
        /// An I-block is out, chained or the last one.
        case commanding(isChained: Bool)
        /// The answer comes in pieces, of which we acknowledge each.
        case answering
        case checkingPresence
        case deselecting
        case failed(BlockError)
    }

    /// Longest answer APDU: 65 536 bytes and the status word.
    package static let longestAnswer = 65_538
    /// Silences in a row, and repetitions of one block at the card's wish, after which the card is given up.
    package static let patience = 3
    /// A card that fills the smallest frames needs no more pieces.
    static let mostPieces = longestAnswer / FrameSize(code: 0).information + 1
    /// Silences and repetitions during one command.
    static let mostRecoveries = 200
    /// How often a card may ask for more time during one command, and for how long it may then be waited in vain.
    static let mostExtensions = 1_000
    static let longestWait = Duration.seconds(30)

    private let parameters: CardParameters
    private var state = State.ready
    /// Rule A: 0 after activation.
    private var number: UInt8 = 0
    private var command: [UInt8] = []
    /// Bytes that the card has acknowledged, and bytes of the block that is out.
    private var acknowledged = 0
    private var outstanding = 0
    private var answer: [UInt8] = []
    private var pieces = 0
    private var silences = 0
    private var repetitions = 0
    private var recoveries = 0
    private var extensions = 0
    private var waited = Duration.zero

    package init(_ parameters: CardParameters) { self.parameters = parameters }

    // MARK: Beginning

    /// Begins a command, which must not be empty.
    package mutating func begin(_ command: consuming [UInt8]) -> Step {
        guard case .ready = state, !command.isEmpty else { return notReady() }
        self.command = command
        (acknowledged, pieces, recoveries, extensions, waited) = (0, 0, 0, 0, .zero)
        answer = []
        return sendNext()
    }

    /// Begins to ask whether the card is still there: by R(NAK), which a card that has lost nothing answers with R(ACK)
    /// and no effect. `done` is empty.
    package mutating func beginPresenceCheck() -> Step {
        guard case .ready = state else { return notReady() }
        state = .checkingPresence
        (silences, recoveries, extensions, waited) = (0, 0, 0, .zero)
        return send(.refusal(number: number))
    }

    /// Begins S(DESELECT), after which the card is in state HALT. `done` is empty.
    package mutating func beginDeselect() -> Step {
        guard case .ready = state else { return notReady() }
        state = .deselecting
        (silences, recoveries, waited) = (0, 0, .zero)
        return .send(Block.deselect.bytes, within: FrameWaitingTime.activation)
    }

    private func notReady() -> Step {
        if case .failed(let error) = state { return .failed(error) }
        return .failed(.notReady)
    }

    // MARK: What came

    /// A frame came, with right CRC.
    package mutating func receive(_ frame: [UInt8]) -> Step {
        guard let block = Block(frame) else { return receiveNothing() }
        switch (state, block) {
        case (.ready, _), (.failed, _):
            return notReady()
        case (.deselecting, .deselect):
            return end([])
        case (.deselecting, _):
            return receiveNothing()
        case (_, .waitingTimeExtension(let times)):
            return extend(times)
        case (.checkingPresence, .acknowledgement), (.checkingPresence, .information):
            return end([])
        // Rule B, rule 7.
        case (.commanding(isChained: true), .acknowledgement(number)):
            toggle()
            acknowledged += outstanding
            return sendNext()
        // Rule 6: the card has not got our block.
        case (.commanding, .acknowledgement(let other)) where other != number:
            return repeatBlock()
        case (.commanding(isChained: false), .information(let content, let isChained, number)),
            (.answering, .information(let content, let isChained, number)):
            toggle()
            return take(content, isChained: isChained)
        default:
            return receiveNothing()
        }
    }

    /// Nothing came in time, or a broken frame.
    package mutating func receiveNothing() -> Step {
        switch state {
        case .ready, .failed: return notReady()
        case .commanding, .answering, .checkingPresence, .deselecting: break
        }
        silences += 1
        waited += parameters.waitingTime
        guard silences <= Self.patience, recover(), waited <= Self.longestWait else { return fail(.unresponsive) }
        switch state {
        // Rule 5.
        case .answering: return send(.acknowledgement(number: number))
        // Rule 8.
        case .deselecting: return .send(Block.deselect.bytes, within: FrameWaitingTime.activation)
        // Rule 4.
        case .commanding, .checkingPresence, .ready, .failed: return send(.refusal(number: number))
        }
    }

    // MARK: Steps

    private var currentBlock: Block {
        let end = min(acknowledged + outstanding, command.count)
        return .information(command[acknowledged..<end], isChained: end < command.count, number: number)
    }

    private mutating func sendNext() -> Step {
        outstanding = min(parameters.frameSize.information, command.count - acknowledged)
        (silences, repetitions) = (0, 0)
        state = .commanding(isChained: acknowledged + outstanding < command.count)
        return send(currentBlock)
    }

    private mutating func take(_ content: ArraySlice<UInt8>, isChained: Bool) -> Step {
        pieces += 1
        silences = 0
        guard pieces <= Self.mostPieces, answer.count + content.count <= Self.longestAnswer else {
            return fail(.endless)
        }
        if !isChained, answer.isEmpty { return end(Array(content)) }
        answer += content
        guard isChained else { return end(answer) }
        state = .answering
        return send(.acknowledgement(number: number))
    }

    private mutating func extend(_ times: UInt8) -> Step {
        let time = min(parameters.waitingTime * Int(times), FrameWaitingTime.longest)
        extensions += 1
        waited += time
        guard extensions <= Self.mostExtensions, waited <= Self.longestWait else { return fail(.waitsTooLong) }
        return .send(Block.waitingTimeExtension(times).bytes, within: time + FrameWaitingTime.tolerance)
    }

    private mutating func repeatBlock() -> Step {
        silences = 0
        repetitions += 1
        guard repetitions <= Self.patience, recover() else { return fail(.unresponsive) }
        return send(currentBlock)
    }

    private mutating func recover() -> Bool {
        recoveries += 1
        return recoveries <= Self.mostRecoveries
    }

    private func send(_ block: Block) -> Step {
        .send(block.bytes, within: parameters.waitingTime + FrameWaitingTime.tolerance)
    }

    private mutating func end(_ answer: [UInt8]) -> Step {
        state = .ready
        forget()
        return .done(answer)
    }

    private mutating func fail(_ error: BlockError) -> Step {
        state = .failed(error)
        forget()
        return .failed(error)
    }

    private mutating func toggle() { number ^= 1 }

    private mutating func forget() {
        command = []
        answer = []
    }
}
