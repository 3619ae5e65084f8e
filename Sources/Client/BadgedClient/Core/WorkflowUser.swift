// SPDX-License-Identifier: Apache-2.0
public import Text

/// Answers the questions of a workflow for the user. Each feature adds the questions of its own workflows, such as
/// `EIDUser` and `WalletUser`.
///
/// A question can become void: the card leaves, or the workflow ends. Then the task that runs the method is cancelled,
/// and its result is dropped.
public protocol WorkflowUser: Sendable {
    /// INSERT_CARD: a card is needed. `error` says why the card in `reader` cannot be used.
    func insertCard(error: String?, reader: String?) async

    /// PAUSE: the card has slipped. Returns true when the card lies well again, false to cancel the workflow.
    func repositionCard() async -> Bool

    /// The card has left while it worked. The value that was sent is void; INSERT_CARD or the end of the workflow
    /// follows.
    func cardLeft(reader: String) async

    /// STATUS: the progress in percent has changed.
    func progress(_ percent: Int) async

    /// READER, and every other message that arrives during the workflow.
    func other(_ event: Event) async
}

extension WorkflowUser {
    public func insertCard(error: String?, reader: String?) async {}
    public func repositionCard() async -> Bool { false }
    public func cardLeft(reader: String) async {}
    public func progress(_ percent: Int) async {}
    public func other(_ event: Event) async {}
}

/// Answers the questions of a workflow for the secrets of a card.
public protocol CardUser: WorkflowUser {
    /// ENTER_PIN and the other ENTER_ messages of `SecretQuestion`: returns the value, or nil to cancel the workflow.
    /// It is sent once and wiped. After a wrong value the same question comes again.
    func answer(_ question: SecretQuestion) async -> SecretBox?

    /// The user types the digits on the keypad of the reader, which accepts them after this returns true. false cancels
    /// the workflow. After a question with `error`, wait for the user: otherwise the same error may come again.
    func typeOnKeypad(_ question: SecretQuestion) async -> Bool

    /// Whether no person gives the values. badged then takes a PIN only for an authentication, and protects the tries
    /// of the card: docs/protocol/eid.md, Automatic answers.
    var isAutomatic: Bool { get }
}

extension CardUser {
    public func typeOnKeypad(_ question: SecretQuestion) async -> Bool { question.error == nil }
    public var isAutomatic: Bool { false }
}
