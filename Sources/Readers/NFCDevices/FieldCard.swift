// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import ISO7816
import Taps

/// The card in the field of one device, from detection to loss. Only the device's thread uses it.
final class FieldCard {
    private enum Link {
        /// The driver makes the blocks of ISO/IEC 14443-4.
        case blocks(BlockTransmission)
        /// The chip makes the blocks.
        case chip
        /// The card does not support ISO/IEC 14443-4.
        case none
        /// The card could not be activated or has violated the protocol.
        case dead
    }

    private let device: NFCDevice
    private var target: Target
    private var link = Link.dead
    /// The ATR, built as PC/SC readers build it.
    private(set) var answerToReset: [UInt8] = []
    /// The card has left the field.
    private(set) var isGone = false
    /// The card has got a command since its activation.
    private var isUsed = false
    /// The card has got a command since the last `release`.
    private var isHeld = false
    /// The error of a device that failed during a command or a reset. Neither the device nor the card can be used
    /// further.
    private(set) var failure: NFCCode?
    /// The card may hold a secure channel: the last command belonged to a channel or to PACE. Any other command would
    /// have ended the channel. ISO/IEC 7816-4, 5.1.1 and 7.5.
    private(set) var mayHoldChannel = false

    private static let activationAttempts = 3
    /// Microseconds without power after which every card is reset. ISO/IEC 14443-3, 5.
    private static let fieldOffTime: UInt32 = 10_000
    /// Limit for one command and its answer. The longest ones take ten seconds in the air and on a serial line.
    private static let exchangeTimeout = Duration.seconds(60)
    /// A tag of type 2 answers within 5 ms. NFC Forum Type 2 Tag 1.0.
    private static let pageTime = Duration.milliseconds(5)
    /// Limit for one command when the chip makes the blocks; includes waiting time extensions.
    private static let chipTimeout = Duration.seconds(10)

    /// Activates the card. A card that cannot be activated is a mute card.
    /// - Throws: when the device fails.
    init(_ target: Target, on device: NFCDevice) throws(NFCCode) {
        self.target = target
        self.device = device
        for attempt in 1...Self.activationAttempts {
            if try activate() { return }
            guard attempt < Self.activationAttempts, try selectAgain() else { return }
        }
    }

    // MARK: Commands

    /// Sends one command, once.
    /// - Throws: when the device fails.
    private func transmit(_ command: CommandAPDU) throws(NFCCode) -> Result<ResponseAPDU, CardError> {
        guard !isGone else { return .failure(.removed) }
        if command.cla == 0xFF { return try answerAsReader(command) }
        isUsed = true
        isHeld = true
        mayHoldChannel = command.cla & 0x0C == 0x0C || command.ins == 0x86 || command.ins == 0x87
        var answer: [UInt8]?
        switch link {
        case .blocks(var transmission):
            answer = try run(&transmission, transmission.begin(command.bytes))
            link = answer == nil ? .dead : .blocks(transmission)
        case .chip:
            guard !command.isExtended else { return .failure(.tooLong) }
            answer = try device.exchangeCommand(command.bytes, within: Self.chipTimeout)
        case .none:
            // PC/SC readers give this answer for cards that take no APDUs. ISO/IEC 7816-4: instruction not supported.
            return .success(ResponseAPDU(StatusWord(0x6D00)))
        case .dead:
            break
        }
        if let answer, let response = ResponseAPDU(bytes: answer) { return .success(response) }
        // Only a new activation tells a mute card from a removed one. The card has lost its state in both cases.
        return .failure(try reset() ? .mute : .removed)
    }

    /// Answers a command for the reader itself, which no card gets. PC/SC part 3, 3.2.2.
    private func answerAsReader(_ command: CommandAPDU) throws(NFCCode) -> Result<ResponseAPDU, CardError> {
        switch (command.ins, command.p1, command.p2) {
        case (0xCA, 0x00, 0x00):
            guard let identifier = target.identifier else { return .success(ResponseAPDU(StatusWord(0x6A81))) }
            guard command.le ?? 0 >= identifier.count else {
                return .success(ResponseAPDU(StatusWord(0x6C00 | UInt16(identifier.count))))
            }
            return .success(ResponseAPDU(data: identifier, .ok))
        case (0xB0, 0x00, _): return try readPages(command)
        default: return .success(ResponseAPDU(StatusWord(0x6A81)))
        }
    }

    /// READ BINARY of four pages of a tag of NFC Forum type 2, by its command READ.
    private func readPages(_ command: CommandAPDU) throws(NFCCode) -> Result<ResponseAPDU, CardError> {
        guard case .a(_, selectAnswer: 0x00) = target, let count = command.le, (1...16).contains(count) else {
            return .success(ResponseAPDU(StatusWord(0x6A81)))
        }
        isUsed = true
        isHeld = true
        if let answer = try readPages(from: command.p2), answer.count == 16 {
            return .success(ResponseAPDU(data: Array(answer.prefix(count)), .ok))
        }
        // A tag that refuses a page is idle until it is selected again.
        return try reset() ? .success(ResponseAPDU(StatusWord(0x6A82))) : .failure(.removed)
    }

    private func readPages(from page: UInt8) throws(NFCCode) -> [UInt8]? {
        let frame = [0x30, page]
        do throws(NFCCode) {
            return try device.exchange(frame, within: Self.pageTime)
        } catch {
            guard error.meaning == .unsupported, device.sendsFrames else { throw error }
            try device.disableRawFrames()
            return try reset() ? try device.exchange(frame, within: Self.pageTime) : nil
        }
    }

    /// Sends one command, once. A failure of the device is kept in `failure` for the device's thread.
    func transmitOrFail(_ command: CommandAPDU) -> Result<ResponseAPDU, CardError> {
        do throws(NFCCode) {
            return try transmit(command)
        } catch {
            failure = error
            return .failure(.serviceUnavailable)
        }
    }

    /// Runs one exchange of blocks to its end.
    /// - Returns: nil when the card does not respond any more.
    private func run(
        _ transmission: inout BlockTransmission,
        _ first: BlockTransmission.Step
    ) throws(NFCCode) -> [UInt8]? {
        var step = first
        let deadline = ContinuousClock.now + Self.exchangeTimeout
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

    /// Checks whether the card is still in the field. Must not be called while the card may hold a secure channel.
    ///
    /// When the chip makes the blocks, the check needs a new activation, and is left out while the card is in use.
    /// - Throws: when the device fails.
    func checkPresence() throws(NFCCode) {
        guard !isGone else { return }
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
    }

    /// Switches the card's power off and on and activates the card again. The card loses every secure channel.
    /// - Returns: false when the card has left.
    @discardableResult
    private func reset() throws(NFCCode) -> Bool {
        isUsed = false
        mayHoldChannel = false
        for _ in 1...Self.activationAttempts {
            guard try selectAgain() else {
                isGone = true
                return false
            }
            if try activate() { return true }
        }
        return true
    }

    /// Ends the use of the card. With `reset` a card that got commands is reset. A failure of the device is kept in
    /// `failure` for the device's thread.
    func release(reset isResetNeeded: Bool) {
        isHeld = false
        guard isResetNeeded, isUsed else { return }
        do throws(NFCCode) {
            try reset()
        } catch {
            failure = error
        }
    }

    /// Switches the field off and on and selects the card. A card with another fixed UID is another card.
    private func selectAgain() throws(NFCCode) -> Bool {
        try device.setField(on: false)
        usleep(Self.fieldOffTime)
        try device.setField(on: true)
        for _ in 1...Self.activationAttempts {
            usleep(Self.fieldOffTime)
            guard let found = try device.select(typeB: target.isTypeB) else { continue }
            guard found.isSameCard(as: target) else { return false }
            target = found
            return true
        }
        return false
    }

    // MARK: Activation

    /// Prepares the selected card for commands.
    private func activate() throws(NFCCode) -> Bool {
        link = .dead
        answerToReset = []
        guard target.hasBlockProtocol else {
            if case .malformed = target { return false }
            link = .none
            answerToReset = TagType.storageAnswerToReset(selectAnswer: target.selectAnswer)
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
            try device.disableRawFrames()
            guard try selectAgain() else { return false }
            link = .chip
            return true
        }
    }

    /// Activates a card of type A by RATS. ISO/IEC 14443-4, 5.6.1.
    private func activateA() throws(NFCCode) -> Bool {
        guard
            let bytes = try device.exchange(
                ATS.request(frameSizeCode: frameSizeCode),
                within: FrameWaitingTime.activation
            ),
            let answer = try? ATS(bytes)
        else { return false }
        openLink(answer.parameters)
        answerToReset = ContactlessATR.typeA(historicalBytes: answer.historicalBytes)
        return true
    }

    /// Activates a card of type B. The chip has already sent ATTRIB, with a frame size of its own. The card is
    /// therefore deselected, woken up and activated with the driver's ATTRIB. When that fails, the chip's ATTRIB is
    /// used.
    private func activateB(_ found: ATQB) throws(NFCCode) -> Bool {
        var transmission = BlockTransmission(found.parameters)
        if try run(&transmission, transmission.beginDeselect()) != nil,
            let bytes = try device.exchange(ATQB.wakeUp, within: FrameWaitingTime.activation),
            let answer = try? ATQB(bytes), answer.hasBlockProtocol,
            let attribAnswer = try device.exchange(
                answer.attrib(frameSizeCode: frameSizeCode),
                within: answer.parameters.waitingTime
            ),
            let bufferLength = try? ATQB.bufferLength(attribAnswer)
        {
            openLink(answer.parameters)
            answerToReset = ContactlessATR.typeB(answer, bufferLength: bufferLength)
            return true
        }
        guard try selectAgain(), case .b(let answer) = target else { return false }
        openLink(answer.parameters)
        answerToReset = ContactlessATR.typeB(answer, bufferLength: 0)
        return true
    }

    private var frameSizeCode: UInt8 { device.connection.maximumFrameCode }

    /// Waits for the card's guard time and starts the block protocol.
    private func openLink(_ parameters: CardParameters) {
        var parameters = parameters
        let maximum = FrameSize(code: frameSizeCode)
        if parameters.frameSize.bytes > maximum.bytes { parameters.frameSize = maximum }
        let time = parameters.guardTime.components
        if parameters.guardTime > .zero {
            usleep(UInt32(clamping: time.seconds * 1_000_000 + time.attoseconds / 1_000_000_000_000))
        }
        link = .blocks(BlockTransmission(parameters))
    }
}

extension Target {
    /// False when this is certainly another card: another type or another fixed UID. A 4-byte UID that begins with 08
    /// is new at each power-on, and so are most UIDs of type B. ISO/IEC 14443-3, 6.5.4.
    fileprivate func isSameCard(as other: Target) -> Bool {
        switch (self, other) {
        case (.a(let new, _), .a(let old, _)):
            new == old || new.count == 4 && old.count == 4 && new.first == 0x08 && old.first == 0x08
        case (.b, .b), (.malformed, _), (_, .malformed): true
        case (.a, .b), (.b, .a): false
        }
    }
}
