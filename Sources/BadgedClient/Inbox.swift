// SPDX-License-Identifier: Apache-2.0
import Synchronization
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
    /// Most bytes of unread events; 0: events are not kept.
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    /// Why it ended; nil before that.
    var ending: ClientError? { state.withLock { $0.ending } }

    /// Takes one message.
    func deliver(_ event: Event) throws(ClientError) {
        let overflow = state.withLock { state in
            if let text = event.json["request"]?.string,
                let answer = state.answers.removeValue(forKey: RequestID(text: text)), answer.fill(.success(event))
            {
                return false
            }
            guard limit > 0, state.ending == nil else { return false }
            while !state.readers.isEmpty {
                // One that was cancelled a moment ago does not take it.
                if state.readers.removeFirst().fill(event) { return false }
            }
            state.events.append(event)
            state.size += event.text.utf8.count
            return state.size > limit
        }
        if overflow { throw .unreadEvents }
    }

    /// No more messages: who waits for an answer gets `error`, the events end after those that are there.
    func end(_ error: ClientError) {
        state.withLock { state in
            guard state.ending == nil else { return }
            state.ending = error
            for answer in state.answers.values { answer.fill(.failure(error)) }
            for reader in state.readers { reader.fill(nil) }
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
        state.withLock { state in
            if let event = state.popEvent() {
                reader.fill(event)
            } else if state.ending != nil {
                reader.fill(nil)
            } else {
                state.readers.append(reader)
            }
        }
        let event = await reader.value(whenCancelled: nil)
        if event == nil { state.withLock { state in state.readers.removeAll { $0 === reader } } }
        return event
    }
}
