// SPDX-License-Identifier: GPL-3.0-or-later

/// Why the exchange with a card cannot continue.
package enum BlockError: Sendable, Equatable {
    /// The card sent no valid block after all retries: it has left or violates the protocol.
    case unresponsive
    /// The card asked for too much time.
    case waitsTooLong
    /// The answer is longer than any response APDU, or comes in too many blocks.
    case answerTooLong
    /// A command was begun during another command, after an error, or without any bytes.
    case notReady
}

/// The reader's side (PCD) of the half-duplex block protocol. ISO/IEC 14443-4, 7.
///
/// This type does no input or output: it returns what to send and takes what came. Chaining carries commands and answers
/// of any length. Lost, damaged and repeated blocks are recovered by the rules of 7.5.4 and 7.5.5. The number of steps for
/// one command is bounded for every card, and each step names the time limit for the card's answer.
package struct BlockTransmission: Sendable {
    package enum Step: Sendable, Equatable {
        /// Send this frame, to which the CRC is added, and wait this long for the beginning of the answer.
        case send([UInt8], within: Duration)
        /// The answer is complete.
        case done([UInt8])
        /// The exchange has failed, and so will every further command.
        case failed(BlockError)
    }

    private enum State: Sendable {
        case ready
        /// An I-block of the command has been sent. `isChained`: more blocks follow.
        case commanding(isChained: Bool)
        /// The answer comes in several blocks. Each one is acknowledged.
        case answering
        case checkingPresence
        case deselecting
        case failed(BlockError)
    }

    /// The maximum size of a response APDU: 65 536 bytes and the status word.
    package static let maximumAnswer = 65_538
    /// The maximum number of consecutive retries, and of repetitions of one block that the card asks for.
    package static let maximumRetries = 3
    /// The number of the smallest blocks that the longest answer needs.
    static let maximumAnswerBlocks = maximumAnswer / FrameSize(code: 0).information + 1
    /// The maximum number of retries and repetitions during one command.
    static let maximumRecoveries = 200
    /// The maximum number of waiting time extensions during one command.
    static let maximumExtensions = 1_000
    /// The maximum total waiting time during one command.
    static let maximumWait = Duration.seconds(30)

    private let parameters: CardParameters
    private var state = State.ready
    /// The block number. Rule A: 0 after activation.
    private var number: UInt8 = 0
    private var command: [UInt8] = []
    /// Bytes of the command that the card has acknowledged.
    private var acknowledged = 0
    /// Bytes of the command in the block that was sent last.
    private var outstanding = 0
    private var answer: [UInt8] = []
    private var answerBlocks = 0
    private var retries = 0
    private var repetitions = 0
    private var recoveries = 0
    private var extensions = 0
    private var waited = Duration.zero

    package init(_ parameters: CardParameters) { self.parameters = parameters }

    // MARK: Begin

    /// Begins a command. It must not be empty.
    package mutating func begin(_ command: consuming [UInt8]) -> Step {
        guard case .ready = state, !command.isEmpty else { return notReady() }
        self.command = command
        acknowledged = 0
        answerBlocks = 0
        recoveries = 0
        extensions = 0
        waited = .zero
        answer = []
        return sendNext()
    }

    /// Begins a presence check: R(NAK), which a card answers with R(ACK) and without any other effect. `done` is empty.
    package mutating func beginPresenceCheck() -> Step {
        guard case .ready = state else { return notReady() }
        state = .checkingPresence
        retries = 0
        recoveries = 0
        extensions = 0
        waited = .zero
        return send(.refusal(number: number))
    }

    /// Begins S(DESELECT), which puts the card into the state HALT. `done` is empty.
    package mutating func beginDeselect() -> Step {
        guard case .ready = state else { return notReady() }
        state = .deselecting
        retries = 0
        recoveries = 0
        waited = .zero
        return .send(Block.deselect.bytes, within: FrameWaitingTime.activation)
    }

    private func notReady() -> Step {
        if case .failed(let error) = state { return .failed(error) }
        return .failed(.notReady)
    }

    // MARK: Receive

    /// Handles a received frame, without its CRC.
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
        // Rule 6: the card has not received the block.
        case (.commanding, .acknowledgement(let other)) where other != number:
            return repeatBlock()
        case (.commanding(isChained: false), .information(let content, let isChained, number)),
            (.answering, .information(let content, let isChained, number)):
            toggle()
            return receive(content, isChained: isChained)
        default:
            return receiveNothing()
        }
    }

    /// Handles a timeout or a damaged frame.
    package mutating func receiveNothing() -> Step {
        switch state {
        case .ready, .failed: return notReady()
        case .commanding, .answering, .checkingPresence, .deselecting: break
        }
        retries += 1
        waited += parameters.waitingTime
        guard retries <= Self.maximumRetries, recover(), waited <= Self.maximumWait else { return fail(.unresponsive) }
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
        retries = 0
        repetitions = 0
        state = .commanding(isChained: acknowledged + outstanding < command.count)
        return send(currentBlock)
    }

    private mutating func receive(_ content: ArraySlice<UInt8>, isChained: Bool) -> Step {
        answerBlocks += 1
        retries = 0
        guard answerBlocks <= Self.maximumAnswerBlocks, answer.count + content.count <= Self.maximumAnswer else {
            return fail(.answerTooLong)
        }
        if !isChained, answer.isEmpty { return end(Array(content)) }
        answer += content
        guard isChained else { return end(answer) }
        state = .answering
        return send(.acknowledgement(number: number))
    }

    private mutating func extend(_ times: UInt8) -> Step {
        let time = min(parameters.waitingTime * Int(times), FrameWaitingTime.maximum)
        extensions += 1
        waited += time
        guard extensions <= Self.maximumExtensions, waited <= Self.maximumWait else { return fail(.waitsTooLong) }
        return .send(Block.waitingTimeExtension(times).bytes, within: time + FrameWaitingTime.tolerance)
    }

    private mutating func repeatBlock() -> Step {
        retries = 0
        repetitions += 1
        guard repetitions <= Self.maximumRetries, recover() else { return fail(.unresponsive) }
        return send(currentBlock)
    }

    private mutating func recover() -> Bool {
        recoveries += 1
        return recoveries <= Self.maximumRecoveries
    }

    private func send(_ block: Block) -> Step {
        .send(block.bytes, within: parameters.waitingTime + FrameWaitingTime.tolerance)
    }

    private mutating func end(_ answer: [UInt8]) -> Step {
        state = .ready
        clear()
        return .done(answer)
    }

    private mutating func fail(_ error: BlockError) -> Step {
        state = .failed(error)
        clear()
        return .failed(error)
    }

    private mutating func toggle() { number ^= 1 }

    private mutating func clear() {
        command = []
        answer = []
    }
}
