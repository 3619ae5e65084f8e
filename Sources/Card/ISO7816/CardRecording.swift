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

    /// The first line, with the version. What is before it is no part of the recording, such as the rest of a report.
    package static let header = "badged-recording 1"
    private static let headerBytes = Array(header.utf8)
    private static let anyHeader = Array("badged-recording ".utf8)
    /// A recording that is longer, in bytes of text, is refused.
    package static let maximumLength = 1 << 20
    package static let maximumExchanges = 4096
    /// A longer command is refused, in bytes.
    package static let maximumCommand = 4096
    private static let answersToReset = 2...33
    private static let maximumKind = 32
    private static let longestName = 4

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
        guard text.count <= Self.maximumLength else { throw Malformed("is longer than \(Self.maximumLength) bytes") }
        var parser = Parser()
        for (index, line) in Array(text).split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            do throws(Malformed) {
                guard try parser.read(line.last == 0x0D ? line.dropLast() : line) else { break }
            } catch {
                throw Malformed("line \(index + 1): \(error.text)")
            }
        }
        self = try parser.finished()
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
        private(set) var hasHeader = false
        private var answerToReset: [UInt8]?
        private var kind: String?
        private var command: [UInt8]?
        private var exchanges: [Exchange] = []
        private var hasEnd = false

        /// Returns false after the last line.
        mutating func read(_ line: ArraySlice<UInt8>) throws(Malformed) -> Bool {
            guard hasHeader else {
                guard line.starts(with: anyHeader) else { return true }
                guard line.elementsEqual(headerBytes) else { throw Malformed("only \(header) is known") }
                hasHeader = true
                return true
            }
            if line.isEmpty || line.first == UInt8(ascii: "#") { return true }
            // A longer word is no name, and is not compared as text.
            let name = line.prefix(longestName + 1).prefix { $0 != UInt8(ascii: " ") }
            let value = String(decoding: line.dropFirst(name.count + 1), as: UTF8.self)
            switch String(decoding: name, as: UTF8.self) {
            case "atr": try readAnswerToReset(value)
            case "kind": try readKind(value)
            case ">": try readCommand(value)
            case "<": try readAnswer(value)
            case "end" where value.isEmpty:
                hasEnd = true
                return false
            default: throw Malformed("begins with none of atr, kind, >, <, # and end")
            }
            return true
        }

        private func bytes(_ digits: String) throws(Malformed) -> [UInt8] {
            guard let bytes = Hex.decode(digits) else { throw Malformed("is not hexadecimal") }
            return bytes
        }

        private mutating func readAnswerToReset(_ digits: String) throws(Malformed) {
            guard answerToReset == nil else { throw Malformed("a second answer to reset") }
            let bytes = try bytes(digits)
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
            let bytes = try bytes(digits)
            guard bytes.count <= maximumCommand else {
                throw Malformed("a command of more than \(maximumCommand) bytes")
            }
            guard CommandAPDU(bytes: bytes) != nil else { throw Malformed("is no command: its lengths are wrong") }
            command = bytes
        }

        private mutating func readAnswer(_ digits: String) throws(Malformed) {
            guard let asked = command else { throw Malformed("an answer without a command") }
            let bytes = try bytes(digits)
            guard let status = ResponseAPDU(bytes: bytes)?.status else {
                throw Malformed("is no answer, which has 2 to 65538 bytes")
            }
            guard [0x60, 0x90].contains(status.sw1 & 0xF0), status.sw1 != 0x60 else {
                throw Malformed("ends with \(status), which is no status word")
            }
            exchanges.append(Exchange(asked, bytes))
            command = nil
        }

        func finished() throws(Malformed) -> CardRecording {
            guard hasHeader else { throw Malformed("has no line \(header)") }
            guard let answerToReset else { throw Malformed("has no answer to reset: a line atr") }
            guard command == nil else { throw Malformed("the last command has no answer") }
            guard hasEnd else { throw Malformed("has no line end: what follows is missing") }
            return CardRecording(answerToReset: answerToReset, kind: kind, exchanges: exchanges)
        }
    }
}
