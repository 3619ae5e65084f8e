// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Text

/// Holds received messages until they are read: direct answers for the task that sent the command, all others as
/// events.
///
/// A running workflow reads its events from a queue of its own. So `events` can be read beside it, and gets every
/// event, too. While no task reads `events`, the events of the workflow are not kept for it.
final class Inbox: Sendable {
    typealias Answer = OneShot<Result<Event, ClientError>>

    private struct State {
        var ending: ClientError?
        var hasReceived = false
        var answers: [RequestID: Answer] = [:]
        /// The number of received events.
        var count = 0
        var events = EventQueue()
        /// Loops that read `events` now.
        var iterators = 0
        /// The events for the running workflow; nil: no workflow runs.
        var workflow: EventQueue?
        /// How many events of that queue arrived before the workflow began.
        var earlier = 0
        /// Why the workflow cannot go on.
        var workflowEnding: ClientError?
        /// Tasks in `untilRead`.
        var senders: [OneShot<Void>] = []
        var isFull = false
    }

    private let state = Mutex(State())
    /// When more bytes of events than this wait, the link reads no more; 0: events are kept for workflows only.
    private let limit: Int
    private let onRoom = Mutex<(@Sendable () -> Void)?>(nil)

    private let onMessage: (@Sendable (Event) -> Void)?

    init(limit: Int, _ onMessage: (@Sendable (Event) -> Void)?) { (self.limit, self.onMessage) = (limit, onMessage) }

    /// Runs `body` whenever `isFull` becomes false.
    func whenThereIsRoom(_ body: @escaping @Sendable () -> Void) { onRoom.withLock { $0 = body } }

    /// Whether so many events wait that the link must not read more.
    var isFull: Bool { state.withLock { $0.isFull } }

    /// Why the connection has ended; nil while it is open.
    var ending: ClientError? { state.withLock { $0.ending } }

    /// Whether badged has sent a message other than the one with which it closed the connection.
    var hasReceived: Bool { state.withLock { $0.hasReceived } }

    /// Takes a message from the link.
    func deliver(_ event: Event) {
        onMessage?(event)
        state.withLock { state in
            state.hasReceived = true
            if let text = event.json["request"]?.string,
                let answer = state.answers.removeValue(forKey: RequestID(text: text)), answer.fill(.success(event))
            {
                return
            }
            // With several awaited answers it is not clear which command badged could not read.
            if event.isAboutUnreadLine, state.answers.count == 1, let (id, answer) = state.answers.first {
                state.answers[id] = nil
                if answer.fill(.success(event)) { return }
            }
            guard state.ending == nil else { return }
            state.count += 1
            let isKept = limit > 0 && (state.workflow == nil || state.iterators > 0)
            let entry = EventQueue.Entry(number: state.count, event: event, isCopied: isKept)
            state.workflow?.put(entry)
            if isKept { state.events.put(entry) }
            guard isOverflowing(state) else { return }
            state.isFull = true
            // The answers come after these events, which no task reads.
            for answer in state.answers.values { answer.fill(.failure(.unreadEvents)) }
            state.answers = [:]
            // The loop over `events` has stopped, so the events for the workflow would not arrive any more.
            if state.events.size > limit { endWorkflowEvents(&state, .unreadEvents) }
        }
    }

    private func isOverflowing(_ state: State) -> Bool {
        state.events.size > limit || (state.workflow?.size ?? 0) > LineBuffer.maximumLine
    }

    private func endWorkflowEvents(_ state: inout State, _ error: ClientError) {
        if state.workflowEnding == nil { state.workflowEnding = error }
        state.workflow?.end()
    }

    /// Ends the connection: tasks that wait for an answer get `error`; the events end after those that still wait, and
    /// after the message with which badged has closed the connection.
    func end(_ error: ClientError, after refusal: Event? = nil) {
        if let refusal { onMessage?(refusal) }
        state.withLock { state in
            guard state.ending == nil else { return }
            state.ending = error
            if let refusal, limit > 0 {
                state.count += 1
                state.events.put(EventQueue.Entry(number: state.count, event: refusal, isCopied: true))
            }
            for answer in state.answers.values { answer.fill(.failure(error)) }
            for sender in state.senders { sender.fill(()) }
            state.senders = []
            state.answers = [:]
            state.events.end()
            endWorkflowEvents(&state, error)
        }
    }

    /// Prepares for the answer to a command. Call this before the command is sent.
    func expectAnswer(to id: RequestID) -> Answer {
        let answer = Answer()
        state.withLock { state in
            if let ending = state.ending {
                answer.fill(.failure(ending))
            } else if state.isFull {
                answer.fill(.failure(.unreadEvents))
            } else {
                state.answers[id] = answer
            }
        }
        return answer
    }

    /// Makes the answer to a command an event, because no task waits for it any more.
    func forgetAnswer(to id: RequestID) {
        state.withLock { _ = $0.answers.removeValue(forKey: id) }
    }

    // MARK: Events

    /// A loop over `events`, as long as the value exists.
    final class Reading: Sendable {
        fileprivate let inbox: Inbox

        init(_ inbox: Inbox) {
            self.inbox = inbox
            inbox.state.withLock { $0.iterators += 1 }
        }

        deinit { inbox.state.withLock { $0.iterators -= 1 } }

        /// Returns the next event; nil at the end, or when the calling task is cancelled.
        func next() async -> Event? {
            await inbox.next { reader, state in
                state.events.read(reader, isOver: state.ending != nil)
            } forget: { reader, state in
                state.events.forget(reader)
            }
        }
    }

    private func next(
        _ read: (OneShot<Event?>, inout State) -> Void,
        forget: @Sendable (OneShot<Event?>, inout State) -> Void
    ) async -> Event? {
        let reader = OneShot<Event?>()
        let hasRoomAgain = state.withLock { state in
            read(reader, &state)
            return makesRoom(&state)
        }
        if hasRoomAgain { onRoom.withLock { $0 }?() }
        let event = await reader.value(whenCancelled: nil)
        if event == nil { state.withLock { forget(reader, &$0) } }
        return event
    }

    /// Notes that events were read. Returns whether the link can read again.
    private func makesRoom(_ state: inout State) -> Bool {
        guard state.events.size <= limit / 2 else { return false }
        for sender in state.senders { sender.fill(()) }
        state.senders = []
        guard state.isFull, (state.workflow?.size ?? 0) <= LineBuffer.maximumLine / 2 else { return false }
        state.isFull = false
        return true
    }

    /// Returns when the events that wait take at most half of the limit.
    func untilRead() async {
        let sender = OneShot<Void>()
        state.withLock { state in
            if state.ending != nil || state.events.size <= limit / 2 {
                sender.fill(())
            } else {
                state.senders.append(sender)
            }
        }
        await sender.value(whenCancelled: ())
    }

    // MARK: Workflows

    /// Makes a queue for a workflow. If no task reads `events`, the workflow begins with the events that wait there.
    ///
    /// - Parameter isOfBrowser: whether a browser starts the workflow, so that the start may be among the earlier
    ///   events.
    /// - Throws: `workflowRunning`, or `eventsAreRead` when a task may have read the start.
    func beginWorkflow(isOfBrowser: Bool = false) throws(ClientError) {
        let error: ClientError? = state.withLock { state in
            guard state.workflow == nil else { return .workflowRunning }
            if isOfBrowser, state.iterators > 0 { return .eventsAreRead }
            var queue = EventQueue()
            if state.iterators == 0 { swap(&queue, &state.events) }
            state.earlier = queue.count
            (state.workflow, state.workflowEnding) = (queue, state.ending)
            return nil
        }
        if let error { throw error }
    }

    /// Returns the next event of the workflow; nil at the end, or when the calling task is cancelled.
    func nextWorkflowEvent() async -> Event? {
        await next { reader, state in
            guard var queue = state.workflow.take() else {
                reader.fill(nil)
                return
            }
            queue.read(reader, isOver: state.workflowEnding != nil)
            state.workflow = queue
        } forget: { reader, state in
            state.workflow?.forget(reader)
        }
    }

    /// How many of the first events of the workflow arrived before it began.
    var earlierEvents: Int { state.withLock { $0.earlier } }

    /// Why the events of the workflow have ended.
    var workflowEnding: ClientError? { state.withLock { $0.workflowEnding } }

    /// Ends the queue of the workflow. Its unread events go to `events`.
    func endWorkflow() {
        let hasRoomAgain = state.withLock { state in
            guard let rest = state.workflow.take() else { return false }
            if limit > 0 { state.events.append(rest) }
            return makesRoom(&state)
        }
        if hasRoomAgain { onRoom.withLock { $0 }?() }
    }
}
