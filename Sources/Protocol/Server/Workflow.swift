// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Host
package import Text

/// The dialogue that runs in a session: its task, its progress, and the event that it waits for.
@Loop package final class Workflow {
    /// The name in STATUS, such as `AUTH`.
    package let name: String
    package unowned let session: Session
    /// The progress in percent.
    package private(set) var progress = 0
    /// Further members of STATUS about the current step.
    private var details: [JSON.Member] = []
    package private(set) var isCancelled = false
    /// Whether it was cancelled because its client has lost the permission.
    package private(set) var isDenied = false
    /// What its client needs until the end.
    let permission: Permissions
    /// Whether the body has ended. The final message is sent next.
    package private(set) var isOver = false
    /// The reader whose card it has used last, for the log.
    package var reader: String?
    var openPrompt: (any AnyOpenPrompt)? { didSet { limitPrompts() } }
    /// Whether another user waits for the card that the workflow holds. Its questions have a limit in all then, so that
    /// no client can hold a card by many questions: `ServerLimits.sharedPromptTimeout`.
    package var isAwaited = false { didSet { limitPrompts() } }
    /// The time that its questions have taken while another user waited, in milliseconds, before `sharedSince`.
    var sharedTime: Int64 = 0
    /// When this time began to run; nil: it does not run.
    var sharedSince: Int64?
    private(set) lazy var sharedAlarm = Loop.Alarm { [weak self] in self?.openPrompt?.interrupt(.awaited) }
    /// The name of an event that the workflow waits for without a prompt, such as `INSERT_CARD`.
    package var awaitedEvent: String?
    private var showsProgress: (@Loop (Int) -> Void)?
    private var task: Task<Void, Never>?
    /// Ends what waits for a card, and returns whether it did.
    package var whenAbandoned: (@Loop () -> Bool)?
    /// Whether the daemon ends before the card has answered.
    package private(set) var isAbandoned = false

    init(_ name: String, _ session: Session, _ permission: Permissions) {
        self.name = name
        self.session = session
        self.permission = permission
    }

    /// The name of the event that the client can cause now; nil while the workflow runs without the client.
    package var state: String? { openPrompt?.name ?? awaitedEvent }

    /// Runs `body` immediately up to its first wait, so that the next command finds the workflow waiting.
    func start(_ body: @escaping @Loop () async -> (any Message)?) {
        task = Task.immediate { @Loop in
            let end = await body()
            isOver = true
            for feature in session.server.features { await feature.workflowEnded(self) }
            if let end { session.push(end) }
            session.workflowEnded()
        }
        if isCancelled { task?.cancel() }
    }

    /// Ends the workflow with its final message, although a card has not answered, because the daemon ends.
    func abandon() {
        isAbandoned = whenAbandoned?() ?? false
        cancel()
    }

    /// Cancels the workflow because its client has lost the permission.
    func deny() {
        if !isCancelled { isDenied = true }
        cancel()
    }

    /// What the final message says after the loss of the permission.
    package nonisolated static let denied: Phrase = "[access] no longer gives this client the permission"

    package func cancel() {
        isCancelled = true
        awaitedEvent = nil
        task?.cancel()
        openPrompt?.interrupt(.cancelled)
    }

    /// Ends the open prompt if its subject, such as a card, no longer exists.
    package func checkPrompt() {
        if let openPrompt, !openPrompt.isCurrent { openPrompt.interrupt(.cardLost) }
    }

    /// Ends the open prompt, because its answer has become useless.
    package func dropPrompt() { openPrompt?.interrupt(.cancelled) }

    /// Begins a step of the workflow. `details` are further members of STATUS.
    package func progress(_ percent: Int, details: [JSON.Member] = []) {
        progress = percent
        self.details = details
        showsProgress?(percent)
        pushStatus()
    }

    /// Shows each progress from now on, and the last one at once, to another display.
    package func showProgress(_ body: @escaping @Loop (Int) -> Void) {
        showsProgress = body
        if progress > 0 { body(progress) }
    }

    /// Reports to the client that the workflow runs without input and the card must stay.
    package func workBegins() {
        if !isCancelled { pushStatus() }
    }

    private func pushStatus() {
        guard session.wantsStatus, session.level >= .two else { return }
        session.push(
            StatusMessage(workflow: name, progress: progress, state: nil, details: details),
            coalescing: "STATUS"
        )
    }
}
