// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Text
import Threads

/// Holds received messages until they are read: direct answers for the task that sent the command, all others as
/// events.
final class Inbox: Sendable {
    typealias Answer = OneShot<Result<Event, ClientError>>

    private struct State {
        var ending: ClientError?
        var answers: [RequestID: Answer] = [:]
        var events: [Event] = []
        /// Index of the next event. Those before it are read.
        var first = 0
        /// Bytes of the events that wait.
        var size = 0
        var readers: [OneShot<Event?>] = []
        /// Tasks in `untilRead`.
        var senders: [OneShot<Void>] = []
        var isFull = false

        mutating func popEvent() -> Event? {
            guard first < events.count else { return nil }
            let event = events[first]
            size -= event.text.utf8.count
            first += 1
            if first == events.count || first >= 256 {
                events.removeFirst(first)
                first = 0
            }
            return event
        }
    }

    private let state = Mutex(State())
    /// When more bytes of events than this wait, the link reads no more; 0: events are not kept.
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

    /// Takes a message from the link.
    func deliver(_ event: Event) {
        onMessage?(event)
        state.withLock { state in
            if let text = event.json["request"]?.string,
                let answer = state.answers.removeValue(forKey: RequestID(text: text)), answer.fill(.success(event))
            {
                return
            }
            guard limit > 0, state.ending == nil else { return }
            while !state.readers.isEmpty {
                // A task that was cancelled just now does not take the event.
                if state.readers.removeFirst().fill(event) { return }
            }
            state.events.append(event)
            state.size += event.text.utf8.count
            guard state.size > limit else { return }
            state.isFull = true
            // The answers come after these events, which no task reads.
            for answer in state.answers.values { answer.fill(.failure(.unreadEvents)) }
            state.answers = [:]
        }
    }

    /// Ends the connection: tasks that wait for an answer get `error`; the events end after those that still wait.
    func end(_ error: ClientError) {
        state.withLock { state in
            guard state.ending == nil else { return }
            state.ending = error
            for answer in state.answers.values { answer.fill(.failure(error)) }
            for reader in state.readers { reader.fill(nil) }
            for sender in state.senders { sender.fill(()) }
            state.senders = []
            state.answers = [:]
            state.readers = []
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

    /// Returns the next event; nil at the end, or when the calling task is cancelled.
    func nextEvent() async -> Event? {
        let reader = OneShot<Event?>()
        let hasRoomAgain = state.withLock { state in
            if let event = state.popEvent() {
                reader.fill(event)
                if state.size <= limit / 2 {
                    for sender in state.senders { sender.fill(()) }
                    state.senders = []
                    defer { state.isFull = false }
                    return state.isFull
                }
            } else if state.ending != nil {
                reader.fill(nil)
            } else {
                state.readers.append(reader)
            }
            return false
        }
        if hasRoomAgain { onRoom.withLock { $0 }?() }
        let event = await reader.value(whenCancelled: nil)
        if event == nil { state.withLock { state in state.readers.removeAll { $0 === reader } } }
        return event
    }

    /// Returns when the events that wait take at most half of the limit.
    func untilRead() async {
        let sender = OneShot<Void>()
        state.withLock { state in
            if state.ending != nil || state.size <= limit / 2 {
                sender.fill(())
            } else {
                state.senders.append(sender)
            }
        }
        await sender.value(whenCancelled: ())
    }
}
