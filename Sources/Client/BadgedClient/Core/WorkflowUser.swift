// SPDX-License-Identifier: Apache-2.0

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
