// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// What was said to a card and what it has answered, as lines that a person can read. docs/recordings.md.
package struct CardRecording: Sendable, Equatable {
    /// One command and its answer, with the status word.
    package struct Exchange: Sendable, Equatable {
        package var command: [UInt8]
        package var answer: [UInt8]
        /// A comment before the command.
        package var note: String?

        package init(_ command: [UInt8], _ answer: [UInt8], note: String? = nil) {
            self.command = command
            self.answer = answer
            self.note = note
        }
    }

    /// The first line, with the version.
    package static let header = "badged-recording 1"
    package static let maximumExchanges = 4096
    /// A longer command is refused, in bytes.
    package static let maximumCommand = 4096
    private static let answersToReset = 2...33
    private static let maximumKind = 32

    package var answerToReset: [UInt8]
    /// The kind of the card, as READER names it; nil: badged did not recognise it.
    package var kind: String?
    package var exchanges: [Exchange]

    package init(answerToReset: [UInt8], kind: String? = nil, exchanges: [Exchange] = []) {
        self.answerToReset = answerToReset
        self.kind = kind
        self.exchanges = exchanges
    }

    /// Reads a recording.
    /// - Throws: `Malformed` with the line and what is wrong with it.
    package init(_ text: some Collection<UInt8>) throws(Malformed) {
        var parser = Parser()
        let hasEnd = try RecordingLines.read(text, header: Self.header) { (name, value) throws(Malformed) in
            try parser.read(name, value)
        }
        self = try parser.finished(hasEnd: hasEnd)
    }

    /// The lines, with an end.
    package var text: String {
        var text = "\(Self.header)\natr \(Hex.encode(answerToReset))\n"
        if let kind { text += "kind \(kind)\n" }
        for exchange in exchanges {
            if let note = exchange.note { text += "# \(note)\n" }
            text += "> \(Hex.encode(exchange.command))\n< \(Hex.encode(exchange.answer))\n"
        }
        return text + "end\n"
    }

    /// Reads one line after the other.
    private struct Parser {
        private var answerToReset: [UInt8]?
        private var kind: String?
        private var command: [UInt8]?
        private var exchanges: [Exchange] = []

        mutating func read(_ name: String, _ value: String) throws(Malformed) {
            switch name {
            case "atr": try readAnswerToReset(value)
            case "kind": try readKind(value)
            case ">": try readCommand(value)
            case "<": try readAnswer(value)
            default: throw Malformed("begins with none of atr, kind, >, <, # and end")
            }
        }

        private mutating func readAnswerToReset(_ digits: String) throws(Malformed) {
            guard answerToReset == nil else { throw Malformed("a second answer to reset") }
            let bytes = try RecordingLines.bytes(digits)
            guard answersToReset.contains(bytes.count), bytes[0] == 0x3B || bytes[0] == 0x3F else {
                throw Malformed("is no answer to reset, which has 2 to 33 bytes, the first 3B or 3F")
            }
            answerToReset = bytes
        }

        private mutating func readKind(_ word: String) throws(Malformed) {
            guard kind == nil, exchanges.isEmpty, command == nil else { throw Malformed("a kind in the wrong place") }
            guard (1...maximumKind).contains(word.utf8.count), word.utf8.allSatisfy({ (0x61...0x7A).contains($0) })
            else { throw Malformed("is no kind of card, which has small letters") }
            kind = word
        }

        private mutating func readCommand(_ digits: String) throws(Malformed) {
            guard answerToReset != nil else { throw Malformed("a command before the answer to reset") }
            guard command == nil else { throw Malformed("the command before has no answer") }
            guard exchanges.count < maximumExchanges else { throw Malformed("more than \(maximumExchanges) commands") }
            let bytes = try RecordingLines.bytes(digits)
            guard bytes.count <= maximumCommand else {
                throw Malformed("a command of more than \(maximumCommand) bytes")
            }
            guard CommandAPDU(bytes: bytes) != nil else { throw Malformed("is no command: its lengths are wrong") }
            command = bytes
        }

        private mutating func readAnswer(_ digits: String) throws(Malformed) {
            guard let asked = command else { throw Malformed("an answer without a command") }
            let bytes = try RecordingLines.bytes(digits)
            guard let status = ResponseAPDU(bytes: bytes)?.status else {
                throw Malformed("is no answer, which has 2 to 65538 bytes")
            }
            guard [0x60, 0x90].contains(status.sw1 & 0xF0), status.sw1 != 0x60 else {
                throw Malformed("ends with \(status), which is no status word")
            }
            exchanges.append(Exchange(asked, bytes))
            command = nil
        }

        func finished(hasEnd: Bool) throws(Malformed) -> CardRecording {
            guard let answerToReset else { throw Malformed("has no answer to reset: a line atr") }
            guard command == nil else { throw Malformed("the last command has no answer") }
            guard hasEnd else { throw Malformed("has no line end: what follows is missing") }
            return CardRecording(answerToReset: answerToReset, kind: kind, exchanges: exchanges)
        }
    }
}
