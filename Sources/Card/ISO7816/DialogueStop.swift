// SPDX-License-Identifier: GPL-3.0-or-later
import Text

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
    package static func check<Value: ~Copyable>(_ step: () throws(Problem) -> Value) throws(Self) -> Value {
        try translating(Self.problem, step)
    }
}

extension CompletingChannel {
    /// Sends a command and returns the data of the answer; another status word than 9000 is the problem `refusal`.
    package func answer<Problem>(
        to command: CommandAPDU,
        orElse refusal: Problem
    ) async throws(DialogueStop<Problem>) -> [UInt8] {
        let answer = try await awaiting(orThrow: DialogueStop<Problem>.card) { () async throws(CardError) in
            try await transmit(command)
        }
        guard answer.status == .ok else { throw .problem(refusal) }
        return answer.data
    }
}
