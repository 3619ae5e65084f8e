// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// Completes answers that a card returns in parts: status words 61xx and 6Cxx. ISO 7816-4, 5.3.4 and 5.6.
///
/// Cards with the protocol T=0 answer in this way. Every applet uses this channel, so applets do not handle these
/// status words.
package struct CompletingChannel: CardChannel {
    private let base: any CardChannel

    /// The maximum number of answers that are joined: 65 536 bytes in parts of 256.
    private static let maximumParts = 256

    package init(_ base: any CardChannel) {
        self.base = (base as? CompletingChannel)?.base ?? base
    }

    /// Sends a command, fetches the rest of its answer (61xx), and corrects its expected length once (6Cxx).
    ///
    /// A command is repeated only after 6Cxx, because a card that answers 6Cxx has not run the command. A command that
    /// expects no data, or that is protected by secure messaging, is never repeated.
    package func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        var answer = try await base.transmit(command)
        if answer.status.sw1 == 0x6C, answer.data.isEmpty, command.le != nil, command.cla & 0x0C == 0 {
            var corrected = command
            corrected.le = Self.length(answer.status)
            answer = try await base.transmit(corrected)
        }
        var data = answer.data
        var parts = 1
        while answer.status.sw1 == 0x61 {
            parts += 1
            guard parts <= Self.maximumParts, data.count < CommandAPDU.maximumLe else {
                throw .other("the answer of the card is too long")
            }
            let request = CommandAPDU(command.cla & 0x03, 0xC0, 0x00, 0x00, le: Self.length(answer.status))
            answer = try await base.transmit(request)
            // A part without data would allow an answer that does not end.
            guard !answer.data.isEmpty || answer.status.sw1 != 0x61 else {
                throw .other("the card announces data and sends none")
            }
            data += answer.data
        }
        return ResponseAPDU(data: data, answer.status)
    }

    /// The length in the second byte of a status word; 0 stands for 256.
    private static func length(_ status: StatusWord) -> Int {
        status.sw2 == 0 ? 256 : Int(status.sw2)
    }
}

/// Why a dialogue with a card has ended early.
package enum DialogueStop<Problem: Error>: Error {
    /// No answer came.
    case card(CardError)
    /// The dialogue does not go on after an answer, or after a step that sends nothing.
    case problem(Problem)

    /// The problem.
    /// - Throws: `CardError` if there was no answer.
    package var problem: Problem {
        get throws(CardError) {
            switch self {
            case .card(let error): throw error
            case .problem(let problem): return problem
            }
        }
    }

    /// Runs a step that sends nothing.
    package static func check<Value: ~Copyable>(_ value: @autoclosure () throws(Problem) -> Value) throws(Self) -> Value
    {
        try translating(Self.problem, value())
    }
}

extension CompletingChannel {
    /// Sends a command and returns the data of the answer; another status word than 9000 is the problem `refusal`.
    package func answer<Problem>(
        to command: CommandAPDU,
        orElse refusal: Problem
    ) async throws(DialogueStop<Problem>) -> [UInt8] {
        let answer = try await awaiting(orThrow: DialogueStop<Problem>.card, await transmit(command))
        guard answer.status == .ok else { throw .problem(refusal) }
        return answer.data
    }
}
