// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Text

/// The connection of the client: when its lines are handled, when messages are sent, and how it ends.
extension Session {
    // MARK: Turns

    /// Whether the session waits in `Turns`.
    var isWaiting: Bool {
        get { work == .waiting }
        set { work = newValue ? .waiting : .idle }
    }

    /// Whether nothing waits for the client, or for an answer to it.
    var isIdle: Bool { workflow == nil && work == .idle && connection != .closed && outbox.isEmpty }

    /// Whether nobody receives its messages any more.
    package var hasLeft: Bool {
        switch connection {
        case .open, .finishing: false
        case .left, .drained, .closed: true
        }
    }

    /// Whether no further lines come.
    private var hasInputEnded: Bool { connection == .finishing || connection == .drained }

    /// Whether reading is paused: until the client has read its answers, and until a deferred answer is complete.
    private var isPaused: Bool { work == .deferring || outbox.isFull }

    func updateInterest() { stream.isReading = connection == .open && work != .waiting && !isPaused }

    func ready(_ events: UInt32) {
        if events & Loop.writable != 0 { flush() }
        if events & Loop.hungUp != 0 { return clientLeft() }
        if events & Loop.readable != 0, connection == .open, !isPaused { server.turns.enter(self) }
    }

    /// Reads and handles lines until there are no more, or until this time of `Loop.clock`.
    /// - Returns: whether there is more to do now.
    func handleLines(until deadline: Int64) -> Bool {
        guard work == .idle, connection != .closed else { return false }
        work = .handling
        var mayReceive = true
        var hasMore = false
        while connection != .closed {
            if outbox.isFull, !outbox.flush() { clientLeft() }
            guard connection != .closed, !isPaused else { break }
            if let line = input.next() {
                handle(line)
            } else if mayReceive, !hasInputEnded {
                receive()
                // The end of the kernel's data shows when the client has left.
                mayReceive = connection == .left
            } else {
                break
            }
            guard Loop.clock < deadline else {
                hasMore = true
                break
            }
        }
        if work == .handling { work = .idle }
        flush()
        account()
        if hasInputEnded, !hasMore, !isPaused { inputEnded() }
        return hasMore && work == .idle && connection != .closed
    }

    private func receive() {
        input.limit = lineLimit.bytes
        let count = input.fill { stream.receive($0) }
        account()
        // What a client that has left has sent is here.
        if count < 0 || count == 0 && connection == .left { stopReading() }
    }

    /// Runs a method that takes time. The lines after its command, which stays in the buffer, wait for its end.
    func deferLines(_ method: @escaping @Loop () async -> Void) {
        work = .deferring
        // No client waits for the workflow any more, and the workflow may hold a card.
        if hasLeft { workflow?.cancel() }
        deferredBytes = lineBytes
        let operation: @Loop () async -> Void = { [self] in
            await method()
            work = .idle
            deferredBytes = 0
            account()
            server.turns.enter(self)
        }
        Task(executorPreference: Pool.share(of: uid), operation: operation)
    }

    /// Sends what waits, unless more is to come now.
    func flush() {
        guard !hasLeft, work != .handling else { return }
        let wasPaused = isPaused
        guard outbox.flush() else { return clientLeft() }
        account()
        updateInterest()
        if wasPaused, !isPaused { server.turns.enterLater(self) }
        guard hasInputEnded, outbox.isEmpty, workflow == nil, !isPaused, work != .waiting else { return }
        close("the client has finished")
    }

    // MARK: End

    /// Reads nothing more.
    private func stopReading() {
        switch connection {
        case .open: connection = .finishing
        case .left: connection = .drained
        case .finishing, .drained, .closed: break
        }
    }

    /// Called when the client has closed its half and all its lines are handled. Ends its workflow; answers are still sent.
    private func inputEnded() {
        if connection == .drained { return close("the client closed the connection") }
        if let workflow {
            workflow.cancel()
        } else if outbox.isEmpty {
            close("the client has finished")
        }
    }

    /// Called when the client has closed its connection. The lines that the kernel still holds are handled, and answers
    /// are dropped.
    private func clientLeft() {
        guard !hasLeft else { return }
        // The kernel would report the hang-up in each turn.
        stream.abandon()
        outbox.discard()
        if hasInputEnded { return close("the client closed the connection") }
        connection = .left
        switch work {
        case .idle, .waiting: server.turns.enterLater(self)
        case .handling: break
        // The lines wait for an answer that is being prepared; the card of a workflow does not.
        case .deferring: workflow?.cancel()
        }
    }

    /// Ends the session: cancels its workflow, and sends the final message before the connection closes.
    func end(becauseOf reason: String) {
        stopReading()
        if let workflow {
            workflow.cancel()
        } else {
            _ = outbox.flush()
            close(reason)
        }
    }

    func waitForEnd() async {
        guard connection != .closed || workflow != nil else { return }
        await withCheckedContinuation { endWaiters.append($0) }
    }

    func close(_ reason: String) {
        guard connection != .closed else { return }
        connection = .closed
        log(.debug, "\(name) disconnected: \(reason)")
        stream.close()
        outbox.discard()
        account()
        for feature in server.features { feature.sessionEnded(self) }
        if let workflow {
            workflow.cancel()
        } else {
            leave()
        }
    }

    func leave() {
        server.sessionEnded(self)
        for waiter in endWaiters { waiter.resume() }
        endWaiters = []
    }
}
