// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Secrets

/// What a workflow can ask its client for.
package enum Question: Sendable {
    case pin, can, puk, newPIN
}

/// Why a question got no answer.
package enum Interruption: Error, Sendable {
    /// CANCEL, a closed connection, or the end of the daemon.
    case cancelled
    /// The card of the question left its reader.
    case cardRemoved
}

/// The session behind a workflow.
@Loop package protocol WorkflowClient: AnyObject {
    /// The workflow waits for a card. `announce`: nothing was said so far; `obstacles`: what is wrong with cards and
    /// readers that are there, each told once.
    func waitForCard(announce: Bool, obstacles: [(CardObstacle, reader: String)])
    /// It waits no more.
    func cardFound()
    /// Asks the user; the answer is nil when the reader's keypad takes it.
    func ask(_ question: Question, _ reader: Reader) async throws(Interruption) -> SecretBox?
    /// PACE begins: the card must stay.
    func paceStarts()
    /// The card was lost too often: the user has to lay it down better and say so.
    func pauseForBadCardPosition() async throws(Interruption)
}
