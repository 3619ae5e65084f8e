// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import Foundation
import ISO7816
import PKOC
import Secrets
import TestSupport
import Testing
import Text

/// Tests/Vectors/pkoc-nfc.json.
func pkocVectors(file: String = #filePath) throws -> JSON {
    let folder = URL(fileURLWithPath: file).deletingLastPathComponent().deletingLastPathComponent()
    return try JSON([UInt8](Data(contentsOf: folder.appendingPathComponent("Vectors/pkoc-nfc.json"))))
}

extension JSON {
    /// The bytes of a string of hexadecimal digits.
    func bytes(_ key: String) throws -> [UInt8] {
        let bytes = self[key]?.string.flatMap { Hex.decode($0) }
        return try #require(bytes)
    }

    func object(_ key: String) throws -> JSON {
        let value = self[key]
        return try #require(value)
    }
}

/// Answers commands in the order in which they are expected, and counts them.
actor ScriptedCard: CardChannel {
    private var answers: [(command: [UInt8]?, answer: [UInt8])]
    private(set) var commands: [[UInt8]] = []

    /// Each entry is an answer and the command that it answers; nil: any command.
    init(_ answers: [(command: [UInt8]?, answer: [UInt8])]) { self.answers = answers }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        commands.append(command.bytes)
        guard !answers.isEmpty else { throw .removed }
        let next = answers.removeFirst()
        if let expected = next.command, expected != command.bytes { throw .other("another command was expected") }
        guard let answer = ResponseAPDU(bytes: next.answer) else { throw .mute }
        return answer
    }
}
