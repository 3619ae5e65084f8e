// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The firmware of a PN532 or a relative: takes frames of the host interface and returns frames. NXP UM0701-02, 6.2 and 7.
struct Chip {
    private enum Reply {
        /// Response code and data.
        case done([UInt8])
        /// The chip looks for a card until there is one.
        case pending
        case unknown
    }

    private let options: EmulatedPN532.Options
    private let field: RadioField
    private var input: [UInt8] = []
    private var registers: [UInt16: UInt8] = [:]
    /// SetParameters, bit 4: the chip sends RATS.
    private var activatesCards = true
    /// RFConfiguration, item 2: the time limit for the answer of a card, in milliseconds.
    private var cardTimeout = 51.2
    /// RFConfiguration, item 5: searches have no limit.
    private var hasInfiniteSearch = false
    /// The command whose search is still running.
    private(set) var search: [UInt8]?
    private var command: [UInt8] = []
    private var answer: ArraySlice<UInt8> = []
    private(set) var commands = 0
    private var recorded: RecordedChip?

    private static let acknowledgement: [UInt8] = [0x00, 0x00, 0xFF, 0x00, 0xFF, 0x00]
    private static let syntaxError: [UInt8] = [0x00, 0x00, 0xFF, 0x01, 0xFF, 0x7F, 0x81, 0x00]
    /// The maximum number of bytes after TFI, command code and status.
    private static let maximumData = 261

    init(_ options: EmulatedPN532.Options, _ field: RadioField) {
        (self.options, self.field, isSilent) = (options, field, options.isSilent)
        recorded = options.recording.map { RecordedChip($0) }
    }

    var isSilent: Bool

    func responds(at speed: speed_t) -> Bool { !isSilent && speed == options.speed }

    // MARK: Frames

    /// Takes bytes from the host: whole frames or parts of them. `send` gets the frames to the host; the acknowledgement
    /// comes before the command is executed.
    mutating func feed(_ bytes: some Sequence<UInt8>, _ send: (_ frame: [UInt8]) -> Void) {
        input += bytes
        while let start = input.indices.dropLast().first(where: { input[$0] == 0x00 && input[$0 + 1] == 0xFF }) {
            var tail = input[(start + 2)...]
            guard tail.count >= 2 else { break }
            let (first, second) = (tail[tail.startIndex], tail[tail.startIndex + 1])
            if first == 0x00, second == 0xFF {
                // An ACK of the host aborts the running command.
                search = nil
                input = Array(tail.dropFirst(2))
                continue
            }
            var length = Int(first)
            if first == 0xFF, second == 0xFF {
                tail = tail.dropFirst(2)
                guard tail.count >= 3 else { break }
                length = Int(tail[tail.startIndex]) << 8 | Int(tail[tail.startIndex + 1])
                tail = tail.dropFirst(3)
            } else if first &+ second == 0 {
                tail = tail.dropFirst(2)
            } else {
                input = Array(tail)
                continue
            }
            guard tail.count >= length + 1 else { break }
            let body = Array(tail.prefix(length))
            let checksum = tail[tail.startIndex + length]
            input = Array(tail.dropFirst(length + 1))
            guard body.reduce(checksum, &+) == 0, body.first == 0xD4, body.count >= 2 else { continue }
            send(Self.acknowledgement)
            switch run(body[1], body[2...]) {
            case .done(let response): send(Self.frame(response))
            case .pending: break
            case .unknown: send(Self.syntaxError)
            }
        }
        if input.count > 1, !input.contains(0xFF) { input = Array(input.suffix(1)) }
    }

    /// Executes a command that came without a frame.
    /// - Parameter command: code and data.
    /// - Returns: response code and data; nil for an error or a search that is still running.
    mutating func perform(_ command: [UInt8]) -> [UInt8]? {
        guard let code = command.first, case .done(let response) = run(code, command.dropFirst()) else { return nil }
        return response
    }

    /// Continues a running search after a change in the field.
    /// - Returns: the response when the search has ended.
    mutating func fieldChanged() -> [UInt8]? {
        guard let search, let code = search.first, let result = look(code, search.dropFirst()) else { return nil }
        self.search = nil
        return [code &+ 1] + result
    }

    static func frame(_ response: [UInt8]) -> [UInt8] {
        let body = [0xD5] + response
        let (high, low) = (UInt8(truncatingIfNeeded: body.count >> 8), UInt8(truncatingIfNeeded: body.count))
        let head: [UInt8] =
            body.count < 256 ? [low, 0 &- low] : [0xFF, 0xFF, high, low, 0 &- (high &+ low)]
        return [0x00, 0x00, 0xFF] + head + body + [0 &- body.reduce(0, &+), 0x00]
    }

    // MARK: Commands

    private mutating func run(_ code: UInt8, _ data: ArraySlice<UInt8>) -> Reply {
        commands += 1
        search = nil
        let data = Array(data)
        if recorded != nil { return recorded?.answer(to: [code] + data).map { .done($0) } ?? .unknown }
        var result: [UInt8]?
        switch code {
        case 0x00: result = data.first == 0x00 ? data : [0x01]
        case 0x02: result = options.model.version + (options.model == .pn531 ? [] : [options.hasTypeB ? 0x07 : 0x05])
        case 0x04: result = [0x00, 0x00, 0x00, 0x80]
        case 0x06:
            let values = stride(from: 0, to: data.count - 1, by: 2).map { registers[Self.address(data, $0)] ?? 0 }
            result = (options.model == .pn533 ? [0x00] : []) + values
        case 0x08:
            for index in stride(from: 0, to: data.count - 2, by: 3) {
                registers[Self.address(data, index)] = data[index + 2]
            }
            result = options.model == .pn533 ? [0x00] : []
        case 0x12:
            activatesCards = (data.first ?? 0) & 0x10 != 0
            result = []
        case 0x14, 0x10: result = options.model == .pn532 ? [] : nil
        case 0x16: result = [0x00]
        case 0x32: result = configure(data)
        case 0x40: result = exchangeData(data)
        case 0x42: result = communicate(data)
        case 0x44, 0x52, 0x54:
            (command, answer) = ([], [])
            result = [0x00]
        case 0x60 where options.model != .pn532: break
        case 0x4A, 0x60:
            if let found = look(code, data[...]) {
                result = found
            } else if code == 0x60 ? data.first == 0xFF : hasInfiniteSearch {
                search = [code] + data
                return .pending
            } else {
                result = [0x00]
            }
        default: break
        }
        return result.map { .done([code &+ 1] + $0) } ?? .unknown
    }

    private static func address(_ data: [UInt8], _ index: Int) -> UInt16 {
        UInt16(data[index]) << 8 | UInt16(data[index + 1])
    }

    private mutating func configure(_ data: [UInt8]) -> [UInt8]? {
        switch (data.first, data.count) {
        case (0x01, 2): field.turn(on: data[1] & 0x01 != 0)
        case (0x02, 4):
            cardTimeout = 0.1
            for _ in 1..<max(1, Int(data[3])) { cardTimeout *= 2 }
        case (0x05, 4): hasInfiniteSearch = data[3] == 0xFF
        default: break
        }
        return []
    }

    // MARK: Cards

    /// Runs InListPassiveTarget or InAutoPoll once.
    /// - Returns: nil when there is no card.
    private mutating func look(_ code: UInt8, _ data: ArraySlice<UInt8>) -> [UInt8]? {
        let data = Array(data)
        if code == 0x4A {
            switch data.dropFirst().first {
            case 0x00: return typeA().map { [0x01, 0x01] + $0 }
            case 0x03: return typeB().map { [0x01, 0x01] + $0 }
            default: return nil
            }
        }
        for type in data.dropFirst(2) {
            var found: [UInt8]?
            switch type {
            case 0x00, 0x10, 0x20: found = typeA()
            case 0x03, 0x23: found = typeB()
            default: continue
            }
            guard let found else { continue }
            return [0x01, type, UInt8(truncatingIfNeeded: found.count + 1), 0x01] + found
        }
        return nil
    }

    private func typeA() -> [UInt8]? {
        guard let card = field.select(.a) else { return nil }
        let head = [0x00, 0x08, card.selectAnswer, UInt8(card.identifier.count)] + card.identifier
        guard activatesCards, card.selectAnswer & 0x20 != 0 else { return head }
        guard case .frame(let ats) = field.exchange([0xE0, 0x50]) else { return nil }
        return head + ats
    }

    private func typeB() -> [UInt8]? {
        guard options.hasTypeB, let card = field.select(.b) else { return nil }
        field.activateByChip()
        return card.atqb + [0x01, 0x00]
    }

    /// InCommunicateThru.
    private func communicate(_ frame: [UInt8]) -> [UInt8] {
        guard options.sendsFrames else { return [0x27] }
        let (outcome, milliseconds) = field.exchangeTimed(frame)
        if milliseconds > 0 {
            // A slow card: the host waits for the chip this long. The chip's own limit is compared without a clock.
            let time = min(Double(milliseconds), cardTimeout)
            usleep(UInt32(time * 1000))
            if Double(milliseconds) > cardTimeout { return [0x01] }
        }
        switch outcome {
        case .frame(let answer): return [0x00] + answer.prefix(Self.maximumData)
        case .nothing: return [0x01]
        case .damaged: return [0x02]
        }
    }

    /// InDataExchange. Bit 6 of the target or of the status means that more data follows.
    private mutating func exchangeData(_ data: [UInt8]) -> [UInt8] {
        guard let target = data.first else { return [0x10] }
        command += data.dropFirst()
        guard target & 0x40 == 0 else { return [0x00] }
        if answer.isEmpty || data.count > 1 {
            guard let bytes = field.exchangeByChip(command) else {
                command = []
                return [0x01]
            }
            (command, answer) = ([], bytes[...])
        }
        let part = answer.prefix(Self.maximumData)
        answer = answer.dropFirst(part.count)
        return [answer.isEmpty ? 0x00 : 0x40] + part
    }
}
