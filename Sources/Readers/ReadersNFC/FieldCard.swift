// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import ISO7816
import ISODEP

/// The card in the field of one device, from finding it to its loss; used by the device's thread alone.
final class FieldCard {
    /// Why the card takes no commands, or how it does.
    private enum Link {
        case blocks(BlockTransmission)
        /// The chip makes the blocks.
        case chip
        /// A card without ISO/IEC 14443-4.
        case none
        /// It does not come to life, or has stopped keeping to the protocol.
        case dead
    }

    private let device: NFCDevice
    private var target: Target
    private var link = Link.dead
    /// ATR, as PC/SC readers build it.
    private(set) var answerToReset: [UInt8] = []
    /// The card has left.
    private(set) var isGone = false
    /// A command went to the card since it was activated.
    private(set) var isUsed = false
    /// The device has failed while somebody used the card: nothing more can be done with either.
    private(set) var failure: NFCCode?
    /// There may be a secure channel on the card: the last command was part of one, or of its making. Any other command
    /// would have ended it. ISO/IEC 7816-4, 5.1.1 and 7.5.
    private(set) var mayHoldChannel = false

    /// Times that an activation is tried.
    private static let attempts = 3
    /// A field that is off so long is off for every card. ISO/IEC 14443-3, 5.
    private static let pause: UInt32 = 10_000
    /// Longest time for one command and its answer. The longest ones take ten seconds in the air and on a serial line.
    private static let longestExchange = Duration.seconds(60)
    /// What a chip that makes the blocks itself may take, extensions included.
    private static let chipPatience = Duration.seconds(10)

    /// Activates the card. One that does not come to life is a card all the same, which is mute.
    /// - Throws: when the device is not well.
    init(_ target: Target, on device: NFCDevice) throws(NFCCode) {
        (self.target, self.device) = (target, device)
        for attempt in 1...Self.attempts {
            if try activate() { return }
            guard attempt < Self.attempts, try selectAgain() else { return }
        }
    }

    // MARK: Commands

    /// Sends one command, once.
    /// - Throws: when the device is not well.
    func transmit(_ command: CommandAPDU) throws(NFCCode) -> Result<ResponseAPDU, CardError> {
        guard !isGone else { return .failure(.removed) }
        isUsed = true
        mayHoldChannel = command.cla & 0x0C == 0x0C || command.ins == 0x86 || command.ins == 0x87
        var answer: [UInt8]?
        switch link {
        case .blocks(var transmission):
            answer = try run(&transmission, transmission.begin(command.bytes))
            link = answer == nil ? .dead : .blocks(transmission)
        case .chip:
            guard !command.isExtended else { return .failure(.tooLong) }
            answer = try device.exchangeCommand(command.bytes, within: Self.chipPatience)
        case .none:
            // As PC/SC readers answer for cards that take no APDUs. ISO/IEC 7816-4: instruction not supported.
            return .success(ResponseAPDU(StatusWord(0x6D00)))
        case .dead:
            break
        }
        if let answer, let response = ResponseAPDU(bytes: answer) { return .success(response) }
        // There, and silent? Gone? Only a new activation can tell; whatever there was on the card is lost anyway.
        return .failure(try reset() ? .mute : .removed)
    }

    /// `transmit`, with the failure of the device kept for its thread.
    func transmitOrFail(_ command: CommandAPDU) -> Result<ResponseAPDU, CardError> {
        do throws(NFCCode) {
            return try transmit(command)
        } catch {
            failure = error
            return .failure(.serviceUnavailable)
        }
    }

    /// Runs one exchange of blocks to its end; nil when the card cannot be talked to any more.
    private func run(
        _ transmission: inout BlockTransmission,
        _ first: BlockTransmission.Step
    ) throws(NFCCode) -> [UInt8]? {
        var step = first
        let deadline = ContinuousClock.now + Self.longestExchange
        while ContinuousClock.now < deadline {
            switch step {
            case .done(let answer): return answer
            case .failed: return nil
            case .send(let frame, let time):
                if let answer = try device.exchange(frame, within: time) {
                    step = transmission.receive(answer)
                } else {
                    step = transmission.receiveNothing()
                }
            }
        }
        return nil
    }

    // MARK: Presence

    /// Asks the card whether it is still there. Not to be asked while it may hold a secure channel. When it `isHeld`
    /// nothing may happen to it: where it can only be asked by a new activation, it is not.
    func checkPresence(isHeld: Bool) throws(NFCCode) -> Bool {
        guard !isGone else { return false }
        switch link {
        case .blocks(var transmission):
            let isPresent = try run(&transmission, transmission.beginPresenceCheck()) != nil
            link = .blocks(transmission)
            if !isPresent { isGone = true }
        case .chip where isHeld:
            break
        case .chip, .none, .dead:
            if try !selectAgain() { isGone = true }
            if !isGone, case .chip = link, try !activate() { link = .dead }
        }
        return !isGone
    }

    /// Takes the power from the card and activates it anew: it forgets every channel.
    /// - Returns: false when it is not there any more.
    @discardableResult
    func reset() throws(NFCCode) -> Bool {
        (isUsed, mayHoldChannel) = (false, false)
        for _ in 1...Self.attempts {
            guard try selectAgain() else {
                isGone = true
                return false
            }
            if try activate() { return true }
        }
        return true
    }

    /// `reset`, with the failure of the device kept for its thread.
    func resetOrFail() {
        do throws(NFCCode) {
            try reset()
        } catch {
            failure = error
        }
    }

    /// Drops the field and looks for the card; a card with another fixed UID is another card.
    private func selectAgain() throws(NFCCode) -> Bool {
        try device.setField(on: false)
        usleep(Self.pause)
        try device.setField(on: true)
        for _ in 1...Self.attempts {
            usleep(Self.pause)
            guard let found = try device.select(typeB: target.isTypeB) else { continue }
            guard found.isSameCard(as: target) else { return false }
            target = found
            return true
        }
        return false
    }

    // MARK: Activation

    /// Makes the selected card ready for commands.
    private func activate() throws(NFCCode) -> Bool {
        link = .dead
        answerToReset = []
        guard target.hasBlockProtocol else {
            if case .malformed = target { return false }
            link = .none
            return true
        }
        guard device.sendsFrames else {
            link = .chip
            return true
        }
        do throws(NFCCode) {
            switch target {
            case .a: return try activateA()
            case .b(let answer): return try activateB(answer)
            case .malformed: return false
            }
        } catch {
            guard error.meaning == .unsupported else { throw error }
            try device.giveUpFrames()
            guard try selectAgain() else { return false }
            link = .chip
            return true
        }
    }

    /// RATS. ISO/IEC 14443-4, 5.6.1.
    private func activateA() throws(NFCCode) -> Bool {
        guard
            let bytes = try device.exchange(
                ATS.request(frameSizeCode: frameSizeCode),
                within: FrameWaitingTime.activation
            ),
            let answer = try? ATS(bytes)
        else { return false }
        begin(answer.parameters)
        answerToReset = ContactlessATR.typeA(historicalBytes: answer.historicalBytes)
        return true
    }

    /// The chip has sent ATTRIB already, with the frame size it likes. So the card is put to rest, woken up and given
    /// our own; where that does not work, the chip's stays.
    private func activateB(_ found: ATQB) throws(NFCCode) -> Bool {
        var chips = BlockTransmission(found.parameters)
        if try run(&chips, chips.beginDeselect()) != nil,
            let bytes = try device.exchange(ATQB.wakeUp, within: FrameWaitingTime.activation),
            let answer = try? ATQB(bytes), answer.hasBlockProtocol,
            let attribAnswer = try device.exchange(
                answer.attrib(frameSizeCode: frameSizeCode),
                within: answer.parameters.waitingTime
            ),
            let bufferLength = try? ATQB.bufferLength(attribAnswer)
        {
            begin(answer.parameters)
            answerToReset = ContactlessATR.typeB(answer, bufferLength: bufferLength)
            return true
        }
        guard try selectAgain(), case .b(let answer) = target else { return false }
        begin(answer.parameters)
        answerToReset = ContactlessATR.typeB(answer, bufferLength: 0)
        return true
    }

    private var frameSizeCode: UInt8 { device.connection.longestFrameCode }

    private func begin(_ parameters: CardParameters) {
        var parameters = parameters
        let longest = FrameSize(code: frameSizeCode)
        if parameters.frameSize.bytes > longest.bytes { parameters.frameSize = longest }
        let time = parameters.guardTime.components
        if parameters.guardTime > .zero {
            usleep(UInt32(clamping: time.seconds * 1_000_000 + time.attoseconds / 1_000_000_000_000))
        }
        link = .blocks(BlockTransmission(parameters))
    }
}

extension Target {
    /// Cannot be another card: of the same type, and with the same UID unless it is chosen anew at each power-on, as
    /// those of 4 bytes that begin with 08 are, and those of type B. ISO/IEC 14443-3, 6.5.4.
    fileprivate func isSameCard(as other: Target) -> Bool {
        switch (self, other) {
        case (.a(let new, _), .a(let old, _)):
            new == old || new.count == 4 && old.count == 4 && new.first == 0x08 && old.first == 0x08
        case (.b, .b), (.malformed, _), (_, .malformed): true
        case (.a, .b), (.b, .a): false
        }
    }
}
