// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Text

/// A card that plays a recording: a command that was recorded gets its answer, and a command that was not is refused, as
/// a card refuses what it does not know.
///
/// Answers depend on what was selected before. A command that was recorded several times gets one answer after the
/// other, and the last one from then on; a reset begins again. READ BINARY with other lengths gets its bytes out of what
/// was recorded of the file.
package final class RecordedCard: VirtualCardSoftware {
    /// What is selected: an application, and a file in it.
    private struct Place: Hashable {
        var application: [UInt8] = []
        var file: [UInt8] = []
        /// The command before, for GET RESPONSE.
        var previous: [UInt8] = []
    }

    /// A command in its place.
    private struct Question: Hashable {
        let place: Place
        let command: [UInt8]
    }

    private let recording: CardRecording
    private var answers: [Question: [[UInt8]]] = [:]
    private var files: [Place: [UInt8]] = [:]
    /// The answers that each question has had since the reset.
    private var counts: [Question: Int] = [:]
    private var place = Place()
    /// The first bytes of commands that were not recorded, and their number.
    private var unknown: [String] = []
    private var unknownCount = 0

    private static let maximumUnknown = 16

    package init(_ recording: CardRecording) {
        self.recording = recording
        for exchange in recording.exchanges {
            guard let command = CommandAPDU(bytes: exchange.command), let answer = ResponseAPDU(bytes: exchange.answer)
            else { continue }
            let found = Self.place(of: command, from: place)
            for form in Self.forms(exchange.command, command) {
                answers[Question(place: found, command: form), default: []].append(exchange.answer)
            }
            follow(command, answer)
            note(command, answer)
        }
        place = Place()
    }

    package var answerToReset: [UInt8] { recording.answerToReset }

    /// The historical bytes of a contactless card. PC/SC part 3, 3.1.3.2.3.
    package var historicalBytes: [UInt8] {
        let bytes = recording.answerToReset
        guard bytes.count >= 5, bytes[1] & 0xF0 == 0x80, bytes[2] == 0x80, bytes[3] == 0x01 else { return [] }
        return Array(bytes.dropFirst(4).prefix(Int(bytes[1] & 0x0F)))
    }

    /// How many commands were not recorded, and the first ones without their data, which may be secret.
    package var counters: [JSON.Member] {
        [
            .init("notRecorded", .number(String(unknownCount))),
            .init("commandsNotRecorded", .array(unknown.map { .string($0) })),
        ]
    }

    package func reset() {
        place = Place()
        counts = [:]
    }

    package func process(_ bytes: [UInt8]) -> [UInt8] {
        guard let command = CommandAPDU(bytes: bytes) else { return [0x67, 0x00] }
        let answer = answer(to: bytes, command)
        if let response = ResponseAPDU(bytes: answer) { follow(command, response) }
        return answer
    }

    private func answer(to bytes: [UInt8], _ command: CommandAPDU) -> [UInt8] {
        let found = Self.place(of: command, from: place)
        let forms = Self.forms(bytes, command)
        if let answer = next(Question(place: found, command: forms[0])) { return answer }
        if let answer = part(of: command) { return answer }
        if let answer = next(Question(place: found, command: forms[1])) {
            guard let le = command.le else { return Array(answer.suffix(2)) }
            return Array(answer.dropLast(2).prefix(le)) + answer.suffix(2)
        }
        unknownCount += 1
        if unknown.count < Self.maximumUnknown { unknown.append(Hex.encode(bytes.prefix(4))) }
        return Self.refusal(of: command)
    }

    /// The answer to a question, in the order of the recording.
    private func next(_ question: Question) -> [UInt8]? {
        guard let recorded = answers[question], let last = recorded.last else { return nil }
        let count = counts[question, default: 0]
        counts[question] = min(count + 1, recorded.count)
        return count < recorded.count ? recorded[count] : last
    }

    // MARK: Places

    /// The command as it was sent, and without its Le.
    private static func forms(_ bytes: [UInt8], _ command: CommandAPDU) -> [[UInt8]] {
        var short = command
        short.le = nil
        // No command has an odd first byte of this value, so the two forms are never the same.
        return [bytes, [0xFF] + short.bytes]
    }

    private static func selectsApplication(_ command: CommandAPDU) -> Bool {
        guard command.ins == 0xA4 else { return false }
        let isMasterFile = command.data.isEmpty || command.data == [0x3F, 0x00]
        return command.p1 == 0x04 || command.p1 == 0 && isMasterFile
    }

    /// The file that READ BINARY names by its short identifier.
    private static func shortFile(_ command: CommandAPDU) -> [UInt8]? {
        command.ins == 0xB0 && command.p1 & 0x80 != 0 ? [command.p1 & 0x1F] : nil
    }

    /// The offset of READ BINARY.
    private static func offset(_ command: CommandAPDU) -> Int {
        shortFile(command) == nil ? Int(command.p1 & 0x7F) << 8 | Int(command.p2) : Int(command.p2)
    }

    /// What a command depends on.
    private static func place(of command: CommandAPDU, from place: Place) -> Place {
        var place = place
        if command.ins != 0xC0 { place.previous = [] }
        if command.ins == 0xA4 || shortFile(command) != nil { place.file = [] }
        if selectsApplication(command) { place.application = [] }
        return place
    }

    /// Moves to what a command has selected.
    private func follow(_ command: CommandAPDU, _ answer: ResponseAPDU) {
        if command.ins != 0xC0 { place.previous = command.bytes }
        guard [0x90, 0x61, 0x62].contains(answer.status.sw1) else { return }
        if Self.selectsApplication(command) {
            place.application = command.p1 == 0x04 ? command.data : []
            place.file = []
        } else if command.ins == 0xA4 {
            place.file = command.data
        } else if let file = Self.shortFile(command) {
            place.file = file
        }
    }

    // MARK: Files

    /// Adds what was read of a file.
    private func note(_ command: CommandAPDU, _ answer: ResponseAPDU) {
        guard command.ins == 0xB0, command.cla == 0, [0x9000, 0x6282].contains(answer.status.value) else { return }
        let key = file(of: command)
        guard Self.offset(command) == files[key]?.count ?? 0 else { return }
        files[key, default: []] += answer.data
    }

    private func file(of command: CommandAPDU) -> Place {
        Place(application: place.application, file: Self.shortFile(command) ?? place.file)
    }

    /// The bytes that READ BINARY asks for, if they were recorded in other parts.
    private func part(of command: CommandAPDU) -> [UInt8]? {
        guard command.ins == 0xB0, command.cla == 0, let le = command.le, let content = files[file(of: command)] else {
            return nil
        }
        let offset = Self.offset(command)
        guard offset < content.count else { return [0x6B, 0x00] }
        let data = content[offset...].prefix(le)
        let isWhole = data.count == le || le == 256 || le == CommandAPDU.maximumLe
        return Array(data) + (isWhole ? [0x90, 0x00] : [0x62, 0x82])
    }

    /// What a card answers that has no such application, file, data or command.
    private static func refusal(of command: CommandAPDU) -> [UInt8] {
        let refused: RefusedCommand =
            switch command.ins {
            case 0xA4, 0xB0...0xB3: .noApplication
            case 0xCA, 0xCB: .noData
            default: .wrongInstruction
            }
        return [refused.status.sw1, refused.status.sw2]
    }
}

/// A virtual card that is described by a recording.
package struct RecordedCardDescription: VirtualCardDescription {
    private let recording: CardRecording
    private let options: VirtualCardOptions

    package init(_ recording: CardRecording, _ options: VirtualCardOptions = .init()) {
        self.recording = recording
        self.options = options
    }

    package func makeCard() throws(Malformed) -> VirtualCard { try VirtualCard(RecordedCard(recording), options) }
}

/// The kind of virtual cards that play a recording: `recording` is its text, or an array of its lines.
package struct RecordedCardKind: VirtualCardKind {
    package let name = "recording"

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        guard simulator == nil else { throw Malformed("simulator is only for eID cards") }
        let entry = CardEntry("card", card)["recording"]
        guard let json = entry.json else { throw entry.wrong("is missing") }
        let lines = json.string.map { [$0] } ?? json.array?.compactMap(\.string) ?? []
        guard !lines.isEmpty, json.array.map({ $0.count == lines.count }) ?? true else {
            throw entry.wrong("is no text and no array of lines")
        }
        let recording = try translating(
            { (fault: Malformed) in entry.wrong(fault.text) },
            try CardRecording(lines.joined(separator: "\n").utf8)
        )
        return RecordedCardDescription(recording, try VirtualCardOptions(card: card))
    }
}
