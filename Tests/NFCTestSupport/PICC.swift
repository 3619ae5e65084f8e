// SPDX-License-Identifier: GPL-3.0-or-later

/// A contactless card as the air sees it: activation and the card's side of the block protocol, in front of anything
/// that answers APDUs. ISO/IEC 14443-3 and -4, written from the card's rules, with nothing shared with the reader's side.
package struct PICC: Sendable {
    package enum Technology: Sendable { case a, b }

    /// What the card behind says to a command.
    package enum Reply: Sendable, Equatable {
        case answer([UInt8])
        case mute
        /// It has left the field.
        case removed
    }

    private enum State { case idle, ready, active, halted }

    package let technology: Technology
    /// UID or PUPI, 4 bytes. The first one of a card of type A that chooses it anew is 08.
    package let identifier: [UInt8]
    /// SAK; bit 6 announces the block protocol.
    package var selectAnswer: UInt8 = 0x20
    /// What the card says to RATS.
    package var ats: [UInt8]
    /// 12 bytes.
    package var atqb: [UInt8]
    /// S(WTX) with this multiplier, so many times before each answer.
    package var extensions = 0
    package var extensionMultiplier: UInt8 = 1
    /// Bytes of answer in one block; nil: as many as fit.
    package var pieceSize: Int?

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
    /// Frames of the block protocol that came, and commands that the card behind has executed.
    package private(set) var frames = 0
    package private(set) var commands = 0

    private static let sizes = [16, 24, 32, 40, 48, 64, 96, 128, 256]

    /// `frameSizeCode` is FSCI (0 to 8), `waitingTimeCode` FWI. `onReset` runs at every loss of power and at each
    /// deselection, by which a card forgets its channels.
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

    /// A card that gives back what INS C0 brings, and so many bytes as Le of INS B0 says.
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

    // MARK: What the field and the chip do to it

    /// The field goes, or comes: the card forgets everything.
    package mutating func reset() {
        onReset()
        state = .idle
    }

    /// REQA and the selection of type A, or REQB of type B, by the chip.
    package mutating func select() -> Bool {
        guard state == .idle else { return false }
        state = .ready
        return true
    }

    /// A frame of the reader, without CRC.
    /// - Returns: the answer without CRC; nil for silence.
    package mutating func receive(_ frame: [UInt8]) -> (answer: [UInt8]?, isRemoved: Bool) {
        guard let first = frame.first else { return (nil, false) }
        guard state == .active else { return (activate(first, frame), false) }
        frames += 1
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

    /// A command in a chip's own blocks, which are not played.
    package mutating func receiveByChip(_ command: [UInt8]) -> Reply {
        guard state == .active else { return .mute }
        commands += 1
        return application(command)
    }

    // MARK: Activation

    private mutating func activate(_ first: UInt8, _ frame: [UInt8]) -> [UInt8]? {
        switch (technology, first) {
        case (.a, 0xE0) where frame.count == 2 && state == .ready:
            activated(readerFrameCode: frame[1] >> 4)
            return ats
        case (.b, 0x05) where frame.count == 3:
            // WUPB wakes halted cards, REQB does not.
            guard state != .halted || frame[2] & 0x08 != 0 else { return nil }
            state = .ready
            return atqb
        case (.b, 0x1D) where frame.count == 9 && state == .ready && Array(frame[1..<5]) == identifier:
            activated(readerFrameCode: frame[6] & 0x0F)
            return [0x00]
        default: return nil
        }
    }

    /// ATTRIB by the chip itself, with frames of 64 bytes.
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
            return (sendPiece(), false)
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
        return sendPiece()
    }

    private mutating func sendPiece() -> [UInt8]? {
        let piece = answer.prefix(pieceSize ?? readerFrame - 3)
        answer = answer.dropFirst(piece.count)
        isChaining = !answer.isEmpty
        return send([0x02 | (isChaining ? 0x10 : 0) | number] + piece)
    }

    private mutating func send(_ frame: [UInt8]) -> [UInt8] {
        lastSent = frame
        return frame
    }
}
