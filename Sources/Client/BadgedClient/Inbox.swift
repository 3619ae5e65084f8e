// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Text
import Threads
import Wire

/// Where received messages wait: direct answers for who asked, everything else for who reads the events.
final class Inbox: Sendable {
    typealias Answer = OneShot<Result<Event, ClientError>>

    private struct State {
        var ending: ClientError?
        var answers: [RequestID: Answer] = [:]
        var events: [Event] = []
        /// Events before this one were given out.
        var first = 0
        var size = 0
        var readers: [OneShot<Event?>] = []
        /// Who waits until few events are left.
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
    /// When so many bytes of events wait, no more are taken; 0: events are not kept.
    private let limit: Int
    private let onRoom = Mutex<(@Sendable () -> Void)?>(nil)

    private let onMessage: (@Sendable (Event) -> Void)?

    init(limit: Int, _ onMessage: (@Sendable (Event) -> Void)?) { (self.limit, self.onMessage) = (limit, onMessage) }

    /// `body` runs when `isFull` becomes false.
    func whenThereIsRoom(_ body: @escaping @Sendable () -> Void) { onRoom.withLock { $0 = body } }

    /// Whether messages had better wait where they are.
    var isFull: Bool { state.withLock { $0.isFull } }

    /// Why it ended; nil before that.
    var ending: ClientError? { state.withLock { $0.ending } }

    /// Takes one message.
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
                // One that was cancelled a moment ago does not take it.
                if state.readers.removeFirst().fill(event) { return }
            }
            state.events.append(event)
            state.size += event.text.utf8.count
            guard state.size > limit else { return }
            state.isFull = true
            // The answers would come after all these events, which nobody reads.
            for answer in state.answers.values { answer.fill(.failure(.unreadEvents)) }
            state.answers = [:]
        }
    }

    /// No more messages: who waits for an answer gets `error`, the events end after those that are there.
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

    /// To be called before the command is sent, so that the answer finds its place.
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

    /// Nobody waits for that answer any more; it will be an event if it comes.
    func forgetAnswer(to id: RequestID) {
        state.withLock { _ = $0.answers.removeValue(forKey: id) }
    }

    /// The next event; nil at the end, or when the calling task is cancelled.
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

    /// Returns when less than half of what may wait unread does.
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
