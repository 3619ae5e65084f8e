// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Wire

/// The dialogue that runs in a session: its task, how far it is, and what it waits for.
@Loop package final class Workflow {
    /// The name in STATUS, such as `AUTH`.
    package let name: String
    package unowned let session: Session
    /// Percent of the whole.
    package private(set) var progress = 0
    package private(set) var isCancelled = false
    /// The body has ended; the final message is sent next.
    package private(set) var isOver = false
    var openPrompt: (any AnyOpenPrompt)?
    /// The name of an event that the workflow waits for without a prompt, such as `INSERT_CARD`.
    package var awaitedEvent: String?
    private var task: Task<Void, Never>?

    init(_ name: String, _ session: Session) {
        (self.name, self.session) = (name, session)
    }

    /// What the client may do something about now; nil while the workflow works on its own.
    package var state: String? { openPrompt?.name ?? awaitedEvent }

    /// Runs `body` up to its first wait at once, so that the next command finds the workflow where it waits.
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

    /// Ends the open prompt when what it is about is gone.
    package func checkPrompt() {
        if let openPrompt, !openPrompt.isCurrent { openPrompt.interrupt(.outdated) }
    }

    /// A step of the workflow begins.
    package func progress(_ percent: Int) {
        progress = percent
        pushStatus()
    }

    /// Tells the client that the workflow works on its own and the card must stay.
    package func workBegins() {
        if !isCancelled { pushStatus() }
    }

    private func pushStatus() {
        guard session.wantsStatus, session.level >= .two else { return }
        session.push(StatusMessage(workflow: name, progress: progress, state: nil), coalescing: "STATUS")
    }
}
