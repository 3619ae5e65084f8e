// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// What badged-nfc and an NFC board have said to each other, as lines that a person can read. docs/recordings.md.
package struct BoardRecording: Sendable, Equatable {
    /// Bytes in one direction. Those of the board are all that came before the next ones to the board.
    package struct Transfer: Sendable, Equatable {
        package let isFromBoard: Bool
        package var bytes: [UInt8]
        /// A comment before the bytes.
        package var note: String?

        package init(isFromBoard: Bool, _ bytes: [UInt8], note: String? = nil) {
            self.isFromBoard = isFromBoard
            self.bytes = bytes
            self.note = note
        }
    }

    package static let header = "badged-frames 1"
    /// Why there is no recording of a reader of another driver.
    package static let noBoard = "it is no NFC board of badged-nfc"
    package static let maximumTransfers = 4096
    /// Longer bytes in one direction are refused.
    package static let maximumBytes = 4096
    private static let maximumDriver = 32
    private static let answersToReset = 2...33

    /// The driver of libnfc, such as `pn532_uart`.
    package let driver: String
    /// The answer to reset that badged-nfc has built for the card on the board; nil: there was none.
    package let answerToReset: [UInt8]?
    package var transfers: [Transfer]

    package init(driver: String, answerToReset: [UInt8]?, transfers: [Transfer]) {
        self.driver = driver
        self.answerToReset = answerToReset
        self.transfers = transfers
    }

    /// Reads a recording.
    /// - Throws: `Malformed` with the line and what is wrong with it.
    package init(_ text: some Collection<UInt8>) throws(Malformed) {
        var (driver, answerToReset, transfers) = (String?.none, [UInt8]?.none, [Transfer]())
        let hasEnd = try RecordingLines.read(text, header: Self.header) { (name, value) throws(Malformed) in
            switch name {
            case "driver":
                guard driver == nil else { throw Malformed("a second driver") }
                driver = try Self.driver(value)
            case "atr":
                guard answerToReset == nil else { throw Malformed("a second answer to reset") }
                let bytes = try RecordingLines.bytes(value)
                guard Self.answersToReset.contains(bytes.count), bytes[0] == 0x3B else {
                    throw Malformed("is no answer to reset, which has 2 to 33 bytes, the first 3B")
                }
                answerToReset = bytes
            case ">", "<":
                guard driver != nil else { throw Malformed("bytes before the driver") }
                guard transfers.count < Self.maximumTransfers else {
                    throw Malformed("more than \(Self.maximumTransfers) lines of bytes")
                }
                transfers.append(try Self.transfer(isFromBoard: name == "<", value, after: transfers.last))
            default: throw Malformed("begins with none of driver, atr, >, <, # and end")
            }
        }
        guard let driver else { throw Malformed("has no line driver") }
        guard hasEnd else { throw Malformed("has no line end: what follows is missing") }
        self.init(driver: driver, answerToReset: answerToReset, transfers: transfers)
    }

    private static func driver(_ word: String) throws(Malformed) -> String {
        let isDriver = word.utf8.allSatisfy {
            (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == UInt8(ascii: "_")
        }
        guard (1...maximumDriver).contains(word.utf8.count), isDriver else {
            throw Malformed("is no driver, which has small letters, digits and _")
        }
        return word
    }

    private static func transfer(
        isFromBoard: Bool,
        _ digits: String,
        after last: Transfer?
    ) throws(Malformed) -> Transfer {
        let bytes = try RecordingLines.bytes(digits)
        guard (1...maximumBytes).contains(bytes.count) else { throw Malformed("has not 1 to \(maximumBytes) bytes") }
        // A board says nothing by itself, and what it says is one line.
        guard !isFromBoard || last?.isFromBoard == false else { throw Malformed("an answer of the board to nothing") }
        return Transfer(isFromBoard: isFromBoard, bytes)
    }

    /// The lines, with an end.
    package var text: String {
        var text = "\(Self.header)\ndriver \(driver)\n"
        if let answerToReset { text += "atr \(Hex.encode(answerToReset))\n" }
        for transfer in transfers {
            if let note = transfer.note { text += "# \(note)\n" }
            text += "\(transfer.isFromBoard ? "<" : ">") \(Hex.encode(transfer.bytes))\n"
        }
        return text + "end\n"
    }

    // MARK: Frames

    /// What the frames of a chip have between their lengths and their checksum, where both are right. The first byte is D4
    /// to the chip and D5 from it. NXP UM0701-02, 6.2.1.
    package static func bodies(in bytes: [UInt8]) -> [Range<Int>] {
        var bodies: [Range<Int>] = []
        var index = 0
        while index + 4 < bytes.count {
            guard bytes[index] == 0x00, bytes[index + 1] == 0xFF else {
                index += 1
                continue
            }
            var start = index + 4
            var length = Int(bytes[index + 2])
            var check = bytes[index + 2] &+ bytes[index + 3]
            if bytes[index + 2] == 0xFF, bytes[index + 3] == 0xFF, index + 6 < bytes.count {
                start = index + 7
                length = Int(bytes[index + 4]) << 8 | Int(bytes[index + 5])
                check = bytes[index + 4] &+ bytes[index + 5] &+ bytes[index + 6]
            }
            let end = start + length
            guard check == 0, length > 0, end < bytes.count, bytes[start...end].reduce(0, &+) == 0 else {
                index += 2
                continue
            }
            bodies.append(start..<end)
            index = end + 1
        }
        return bodies
    }

    /// The bodies of the frames of a transfer. An ACR122 has no frames of the chip: its messages of CCID count.
    private func bodies(_ transfer: Transfer) -> [ArraySlice<UInt8>] {
        let messageHeader = 10
        guard driver.hasPrefix("acr122") else { return Self.bodies(in: transfer.bytes).map { transfer.bytes[$0] } }
        let message = transfer.bytes.dropFirst(messageHeader)
        // To the chip goes a pseudo-APDU.
        return [message.starts(with: [0xFF, 0x00, 0x00, 0x00]) ? message.dropFirst(5) : message]
    }

    // MARK: Numbers of cards

    /// The numbers of the cards that the board has found: UIDs, and PUPIs of cards of type B.
    package var numbers: Set<[UInt8]> {
        var numbers: Set<[UInt8]> = []
        var command: [UInt8] = []
        for transfer in transfers {
            for body in bodies(transfer) {
                let body = Array(body)
                if body.first == 0xD4 { command = body }
                if body.first == 0xD5, let number = Self.number(in: body, to: command) { numbers.insert(number) }
            }
        }
        return numbers
    }

    /// The number in an answer of the chip: to InListPassiveTarget, InAutoPoll, and REQB or WUPB by InCommunicateThru.
    private static func number(in answer: [UInt8], to command: [UInt8]) -> [UInt8]? {
        guard answer.count > 3 else { return nil }
        switch answer[1] {
        case 0x4B where command.count > 3 && command[3] == 0x03: return pupi(answer.dropFirst(4))
        case 0x4B: return identifier(answer.dropFirst(4))
        case 0x61:
            let target = answer.dropFirst(6)
            return answer[3] & 0x0F == 0x03 ? pupi(target) : identifier(target)
        case 0x43: return pupi(answer.dropFirst(3))
        default: return nil
        }
    }

    /// ATQB begins with 50 and the PUPI.
    private static func pupi(_ answer: ArraySlice<UInt8>) -> [UInt8]? {
        guard answer.first == 0x50, answer.count >= 12 else { return nil }
        return Array(answer.dropFirst().prefix(4))
    }

    /// SENS_RES, SEL_RES, the length of the UID, and the UID.
    private static func identifier(_ target: ArraySlice<UInt8>) -> [UInt8]? {
        guard target.count > 4, let length = target.dropFirst(3).first, (4...12).contains(length) else { return nil }
        let identifier = Array(target.dropFirst(4).prefix(Int(length)))
        return identifier.count == Int(length) ? identifier : nil
    }

    /// Whether one of the numbers occurs anywhere.
    package func contains(_ numbers: [[UInt8]]) -> Bool {
        transfers.contains { transfer in
            transfer.bytes.indices.contains { start in
                numbers.contains { transfer.bytes[start...].starts(with: $0) }
            }
        }
    }

    /// Replaces the numbers wherever they occur, and corrects the checksums of their frames. The first byte of a number
    /// stays: it names the maker of the chip, or says that the number is random.
    package mutating func replaceNumbers() {
        for number in numbers {
            let new = number.prefix(1) + number.dropFirst().map { _ in UInt8.random(in: 0...0xFF) }
            for index in transfers.indices { Self.replace(number, by: Array(new), in: &transfers[index].bytes) }
        }
    }

    private static func replace(_ number: [UInt8], by new: [UInt8], in bytes: inout [UInt8]) {
        let frames = bodies(in: bytes)
        var index = 0
        var isChanged = false
        while index + number.count <= bytes.count {
            if bytes[index...].starts(with: number) {
                bytes.replaceSubrange(index..<index + number.count, with: new)
                index += number.count
                isChanged = true
            } else {
                index += 1
            }
        }
        guard isChanged else { return }
        for body in frames { bytes[body.upperBound] = 0 &- bytes[body].reduce(0, &+) }
    }
}
