// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// Answers commands in the order in which they are expected, and counts them.
package actor ScriptedCard: CardChannel {
    private var answers: [(command: [UInt8]?, answer: [UInt8])]
    package private(set) var commands: [[UInt8]] = []

    /// Each entry is an answer and the command that it answers; nil: any command.
    package init(_ answers: [(command: [UInt8]?, answer: [UInt8])]) { self.answers = answers }

    package func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        commands.append(command.bytes)
        guard !answers.isEmpty else { throw .removed }
        let next = answers.removeFirst()
        if let expected = next.command, expected != command.bytes { throw .other("another command was expected") }
        guard let answer = ResponseAPDU(bytes: next.answer) else { throw .mute }
        return answer
    }
}
