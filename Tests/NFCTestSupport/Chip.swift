// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The firmware of a PN532 or a relative: frames of its host interface in, frames out. NXP UM0701-02, 6.2 and 7.
struct Chip {
    private enum Reply {
        /// Response code and data.
        case done([UInt8])
        /// It looks for a card until there is one.
        case goesOn
        case unknown
    }

    private let nature: EmulatedPN532.Nature
    private let field: RadioField
    private var input: [UInt8] = []
    private var registers: [UInt16: UInt8] = [:]
    /// SetParameters, bit 4: RATS by the chip.
    private var activatesCards = true
    /// RFConfiguration, item 2: how long to wait for a card, in milliseconds.
    private var patience = 51.2
    /// RFConfiguration, item 5: for ever.
    private var searchesForEver = false
    /// A search that goes on until a card comes.
    private var search: [UInt8]?
    private var command: [UInt8] = []
    private var answer: ArraySlice<UInt8> = []
    private(set) var commands = 0

    private static let acknowledgement: [UInt8] = [0x00, 0x00, 0xFF, 0x00, 0xFF, 0x00]
    private static let syntaxError: [UInt8] = [0x00, 0x00, 0xFF, 0x01, 0xFF, 0x7F, 0x81, 0x00]
    /// Most bytes behind TFI, command code and status.
    private static let mostData = 261

    init(_ nature: EmulatedPN532.Nature, _ field: RadioField) { (self.nature, self.field) = (nature, field) }

    var isSearching: Bool { search != nil }

    func hears(at speed: speed_t) -> Bool { !nature.isDumb && speed == nature.speed }

    // MARK: Frames

    /// Takes what comes from the host, whole frames or pieces.
    /// - Returns: the frames that go back, each by itself.
    mutating func feed(_ bytes: some Sequence<UInt8>) -> [[UInt8]] {
        input += bytes
        var output: [[UInt8]] = []
        while let start = input.indices.dropLast().first(where: { input[$0] == 0x00 && input[$0 + 1] == 0xFF }) {
            var rest = input[(start + 2)...]
            guard rest.count >= 2 else { break }
            let (first, second) = (rest[rest.startIndex], rest[rest.startIndex + 1])
            if first == 0x00, second == 0xFF {
                // ACK of the host: what is running is aborted.
                search = nil
                input = Array(rest.dropFirst(2))
                continue
            }
            var length = Int(first)
            if first == 0xFF, second == 0xFF {
                rest = rest.dropFirst(2)
                guard rest.count >= 3 else { break }
                length = Int(rest[rest.startIndex]) << 8 | Int(rest[rest.startIndex + 1])
                rest = rest.dropFirst(3)
            } else if first &+ second == 0 {
                rest = rest.dropFirst(2)
            } else {
                input = Array(rest)
                continue
            }
            guard rest.count >= length + 1 else { break }
            let body = Array(rest.prefix(length))
            let checksum = rest[rest.startIndex + length]
            input = Array(rest.dropFirst(length + 1))
            guard body.reduce(checksum, &+) == 0, body.first == 0xD4, body.count >= 2 else { continue }
            output.append(Self.acknowledgement)
            switch run(body[1], body[2...]) {
            case .done(let response): output.append(Self.frame(response))
            case .goesOn: break
            case .unknown: output.append(Self.syntaxError)
            }
        }
        if input.count > 1, !input.contains(0xFF) { input = Array(input.suffix(1)) }
        return output
    }

    /// A command without a frame: code and data.
    /// - Returns: response code and data; nil for an error, or a search that goes on.
    mutating func perform(_ command: [UInt8]) -> [UInt8]? {
        guard let code = command.first, case .done(let response) = run(code, command.dropFirst()) else { return nil }
        return response
    }

    /// A card came or went.
    /// - Returns: the end of a search that went on.
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
        var result: [UInt8]?
        switch code {
        case 0x00: result = data.first == 0x00 ? data : [0x01]
        case 0x02: result = nature.model.version + (nature.model == .pn531 ? [] : [nature.hasTypeB ? 0x07 : 0x05])
        case 0x04: result = [0x00, 0x00, 0x00, 0x80]
        case 0x06:
            let values = stride(from: 0, to: data.count - 1, by: 2).map { registers[Self.address(data, $0)] ?? 0 }
            result = (nature.model == .pn533 ? [0x00] : []) + values
        case 0x08:
            for index in stride(from: 0, to: data.count - 2, by: 3) {
                registers[Self.address(data, index)] = data[index + 2]
            }
            result = nature.model == .pn533 ? [0x00] : []
        case 0x12:
            activatesCards = (data.first ?? 0) & 0x10 != 0
            result = []
        case 0x14, 0x10: result = nature.model == .pn532 ? [] : nil
        case 0x16: result = [0x00]
        case 0x32: result = configure(data)
        case 0x40: result = exchangeData(data)
        case 0x42: result = communicate(data)
        case 0x44, 0x52, 0x54:
            (command, answer) = ([], [])
            result = [0x00]
        case 0x60 where nature.model != .pn532: break
        case 0x4A, 0x60:
            if let found = look(code, data[...]) {
                result = found
            } else if code == 0x60 ? data.first == 0xFF : searchesForEver {
                search = [code] + data
                return .goesOn
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
            patience = 0.1
            for _ in 1..<max(1, Int(data[3])) { patience *= 2 }
        case (0x05, 4): searchesForEver = data[3] == 0xFF
        default: break
        }
        return []
    }

    // MARK: Cards

    /// InListPassiveTarget or InAutoPoll, once; nil for no card.
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
        guard nature.hasTypeB, let card = field.select(.b) else { return nil }
        field.activateByChip()
        return card.atqb + [0x01, 0x00]
    }

    /// InCommunicateThru.
    private func communicate(_ frame: [UInt8]) -> [UInt8] {
        guard nature.sendsFrames else { return [0x27] }
        let (outcome, milliseconds) = field.exchangeTimed(frame)
        if milliseconds > 0 {
            let time = min(Double(milliseconds), patience)
            usleep(UInt32(time * 1000))
            if Double(milliseconds) > patience { return [0x01] }
        }
        switch outcome {
        case .frame(let answer): return [0x00] + answer.prefix(Self.mostData)
        case .nothing: return [0x01]
        case .broken: return [0x02]
        }
    }

    /// InDataExchange: bit 6 of the target says that the command goes on, and of the status that the answer does.
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
        let part = answer.prefix(Self.mostData)
        answer = answer.dropFirst(part.count)
        return [answer.isEmpty ? 0x00 : 0x40] + part
    }
}
