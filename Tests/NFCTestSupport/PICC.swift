// SPDX-License-Identifier: GPL-3.0-or-later

/// An emulated contactless card: activation and the card's side of the block protocol, for any function that answers
/// APDUs. ISO/IEC 14443-3 and -4. The code shares nothing with the reader's side in `NFCDevices/ISODEP`.
package struct PICC: Sendable {
    package enum Technology: Sendable { case a, b }

    /// The application's reply to a command.
    package enum Reply: Sendable, Equatable {
        case answer([UInt8])
        case mute
        /// The card leaves the field.
        case removed
    }

    private enum State { case idle, ready, active, halted }

    package let technology: Technology
    /// UID or PUPI, 4 bytes; 7 or 10 bytes with type A. A UID of 4 bytes that begins with 08 is a random one.
    package let identifier: [UInt8]
    /// SAK. Bit 6 announces the block protocol.
    package var selectAnswer: UInt8 = 0x20
    /// The answer to RATS.
    package var ats: [UInt8]
    /// The answer to REQB and WUPB, 12 bytes.
    package var atqb: [UInt8]
    /// The memory of a tag of NFC Forum type 2, which has no block protocol: READ returns four pages of four bytes.
    package var memory: [UInt8]?
    /// The number of S(WTX) before each answer.
    package var extensions = 0
    package var extensionMultiplier: UInt8 = 1
    /// The number of answer bytes in one block; nil: as many as fit.
    package var blockSize: Int?

    private let application: @Sendable ([UInt8]) -> Reply
    private let onReset: @Sendable () -> Void
    private var state = State.idle
    private var readerFrame = 256
    private var ownFrame: Int
    /// Rule C: 1 after activation.
    private var number: UInt8 = 1
    private var command: [UInt8] = []
    private var answer: ArraySlice<UInt8> = []
    private var isChaining = false
    private var extensionsLeft = 0
    private var lastSent: [UInt8]?
    /// The number of commands that the application has executed.
    package private(set) var commands = 0

    private static let sizes = [16, 24, 32, 40, 48, 64, 96, 128, 256]

    /// `frameSizeCode` is FSCI (0 to 8), `waitingTimeCode` is FWI. `onReset` runs at each loss of power and at each
    /// deselection.
    package init(
        _ technology: Technology = .a,
        identifier: [UInt8] = [0x08, 0x12, 0x34, 0x56],
        frameSizeCode: UInt8 = 8,
        waitingTimeCode: UInt8 = 8,
        historicalBytes: [UInt8] = [0x80, 0x31, 0xF8],
        onReset: @escaping @Sendable () -> Void = {},
        application: @escaping @Sendable ([UInt8]) -> Reply
    ) {
        (self.technology, self.identifier) = (technology, identifier)
        (self.onReset, self.application) = (onReset, application)
        ownFrame = Self.sizes[Int(min(frameSizeCode, 8))]
        ats =
            [UInt8(5 + historicalBytes.count), 0x70 | frameSizeCode, 0x80, waitingTimeCode << 4, 0x02] + historicalBytes
        atqb = [0x50] + identifier + [0, 0, 0, 0] + [0x00, frameSizeCode << 4 | 0x01, waitingTimeCode << 4]
    }

    /// An application that returns the data of INS C0, and for INS B0 the number of bytes that Le asks for.
    package static func echo(_ command: [UInt8]) -> Reply {
        guard command.count >= 5 else { return .answer([0x67, 0x00]) }
        let isExtended = command[4] == 0 && command.count >= 7
        let short = command[4] == 0 ? 256 : Int(command[4])
        let length = isExtended ? Int(command[5]) << 8 | Int(command[6]) : short
        switch command[1] {
        case 0xC0: return .answer(Array(command.dropFirst(isExtended ? 7 : 5).prefix(length)) + [0x90, 0x00])
        case 0xB0: return .answer((0..<length).map { UInt8(truncatingIfNeeded: $0) } + [0x90, 0x00])
        default: return .answer([0x6D, 0x00])
        }
    }

    // MARK: Field and chip

    /// The field is switched off or on: the card loses its state.
    package mutating func reset() {
        onReset()
        state = .idle
    }

    /// The chip sends REQA and selects the card, or sends REQB.
    package mutating func select() -> Bool {
        guard state == .idle else { return false }
        state = .ready
        return true
    }

    /// Handles a frame of the reader, without CRC.
    /// - Returns: the answer without CRC; nil for no answer.
    package mutating func receive(_ frame: [UInt8]) -> (answer: [UInt8]?, isRemoved: Bool) {
        guard let first = frame.first else { return (nil, false) }
        guard state == .active else { return (activate(first, frame), false) }
        guard frame.count <= ownFrame - 2 else { return (nil, false) }
        switch first {
        case 0x02, 0x03, 0x12, 0x13: return information(frame)
        case 0xA2, 0xA3, 0xB2, 0xB3: return (acknowledgement(first), false)
        case 0xC2:
            onReset()
            state = .halted
            return ([0xC2], false)
        case 0xF2: return grant()
        default: return (nil, false)
        }
    }

    /// Handles a command that the chip sends in blocks of its own. The blocks are not emulated.
    package mutating func receiveByChip(_ command: [UInt8]) -> Reply {
        if memory != nil { return activate(command.first ?? 0, command).map { .answer($0) } ?? .mute }
        guard state == .active else { return .mute }
        commands += 1
        return application(command)
    }

    // MARK: Activation

    private mutating func activate(_ first: UInt8, _ frame: [UInt8]) -> [UInt8]? {
        if let memory {
            // A tag refuses by a NAK of four bits, which the chip does not report, and is then idle.
            guard first == 0x30, frame.count == 2, state == .ready, Int(frame[1]) * 4 < memory.count else {
                state = .halted
                return nil
            }
            return (0..<16).map { memory[(Int(frame[1]) * 4 + $0) % memory.count] }
        }
        switch (technology, first) {
        case (.a, 0xE0) where frame.count == 2 && state == .ready:
            activated(readerFrameCode: frame[1] >> 4)
            return ats
        case (.b, 0x05) where frame.count == 3:
            // Only WUPB wakes a halted card.
            guard state != .halted || frame[2] & 0x08 != 0 else { return nil }
            state = .ready
            return atqb
        case (.b, 0x1D) where frame.count == 9 && state == .ready && Array(frame[1..<5]) == identifier:
            activated(readerFrameCode: frame[6] & 0x0F)
            return [0x00]
        default: return nil
        }
    }

    /// The chip sends ATTRIB of its own, with frames of 64 bytes.
    package mutating func activateByChip() { activated(readerFrameCode: 5) }

    private mutating func activated(readerFrameCode: UInt8) {
        readerFrame = Self.sizes[Int(min(readerFrameCode, 8))]
        (state, number, command, answer, isChaining, lastSent) = (.active, 1, [], [], false, nil)
    }

    // MARK: Blocks

    private mutating func information(_ frame: [UInt8]) -> (answer: [UInt8]?, isRemoved: Bool) {
        number ^= 1  // Rule D.
        command += frame.dropFirst()
        guard frame[0] & 0x10 == 0 else { return (send([0xA2 | number]), false) }
        extensionsLeft = extensions
        return execute()
    }

    private mutating func execute() -> (answer: [UInt8]?, isRemoved: Bool) {
        guard extensionsLeft == 0 else {
            extensionsLeft -= 1
            return (send([0xF2, extensionMultiplier]), false)
        }
        let command = command
        self.command = []
        commands += 1
        switch application(command) {
        case .answer(let bytes):
            answer = bytes[...]
            return (sendBlock(), false)
        case .mute: return (nil, false)
        case .removed: return (nil, true)
        }
    }

    private mutating func grant() -> (answer: [UInt8]?, isRemoved: Bool) {
        guard lastSent?.first == 0xF2 else { return (nil, false) }
        return execute()
    }

    private mutating func acknowledgement(_ control: UInt8) -> [UInt8]? {
        // Rule 11.
        guard control & 0x01 != number else { return lastSent }
        // Rule 12.
        if control & 0x10 != 0 { return send([0xA2 | number]) }
        // Rules E and 13.
        guard isChaining else { return nil }
        number ^= 1
        return sendBlock()
    }

    private mutating func sendBlock() -> [UInt8]? {
        let part = answer.prefix(blockSize ?? readerFrame - 3)
        answer = answer.dropFirst(part.count)
        isChaining = !answer.isEmpty
        return send([0x02 | (isChaining ? 0x10 : 0) | number] + part)
    }

    private mutating func send(_ frame: [UInt8]) -> [UInt8] {
        lastSent = frame
        return frame
    }
}
