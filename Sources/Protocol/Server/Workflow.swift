// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Wire

/// The dialogue that runs in a session: its task, its progress, and the event that it waits for.
@Loop package final class Workflow {
    /// The name in STATUS, such as `AUTH`.
    package let name: String
    package unowned let session: Session
    /// The progress in percent.
    package private(set) var progress = 0
    package private(set) var isCancelled = false
    /// Whether the body has ended. The final message is sent next.
    package private(set) var isOver = false
    var openPrompt: (any AnyOpenPrompt)?
    /// The name of an event that the workflow waits for without a prompt, such as `INSERT_CARD`.
    package var awaitedEvent: String?
    private var task: Task<Void, Never>?

    init(_ name: String, _ session: Session) {
        (self.name, self.session) = (name, session)
    }

    /// The name of the event that the client can cause now; nil while the workflow runs without the client.
    package var state: String? { openPrompt?.name ?? awaitedEvent }

    /// Runs `body` immediately up to its first wait, so that the next command finds the workflow waiting.
    func start(_ body: @escaping @Loop () async -> any Message) {
        task = Task.immediate { @Loop in
            let end = await body()
            isOver = true
            for feature in session.server.features { await feature.workflowEnded(self) }
            session.push(end)
            session.workflowEnded()
        }
        if isCancelled { task?.cancel() }
    }

    package func cancel() {
        isCancelled = true
        awaitedEvent = nil
        task?.cancel()
        openPrompt?.interrupt(.cancelled)
    }

    /// Ends the open prompt if its subject, such as a card, no longer exists.
    package func checkPrompt() {
        if let openPrompt, !openPrompt.isCurrent { openPrompt.interrupt(.outdated) }
    }

    /// Begins a step of the workflow.
    package func progress(_ percent: Int) {
        progress = percent
        pushStatus()
    }

    /// Reports to the client that the workflow runs without input and the card must stay.
    package func workBegins() {
        if !isCancelled { pushStatus() }
    }

    private func pushStatus() {
        guard session.wantsStatus, session.level >= .two else { return }
        session.push(StatusMessage(workflow: name, progress: progress, state: nil), coalescing: "STATUS")
    }
}
