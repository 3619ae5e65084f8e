// SPDX-License-Identifier: Apache-2.0
public import Secrets

/// Answers the questions of a workflow for the secrets of a card.
public protocol CardUser: WorkflowUser {
    /// ENTER_PIN and the other ENTER_ messages of `SecretQuestion`: returns the value, or nil to cancel the workflow. It
    /// is sent once and wiped. After a wrong value the same question comes again.
    func answer(_ question: SecretQuestion) async -> SecretBox?

    /// The user types the digits on the keypad of the reader, which accepts them after this returns true. false cancels
    /// the workflow. After a question with `error`, wait for the user: otherwise the same error may come again.
    func typeOnKeypad(_ question: SecretQuestion) async -> Bool
}

extension CardUser {
    public func typeOnKeypad(_ question: SecretQuestion) async -> Bool { question.error == nil }
}
