// SPDX-License-Identifier: Apache-2.0
import Glibc
import Secrets
import Synchronization
import Text
import Threads
import Wire

/// One connection at work: a thread that waits for the socket, reads lines and writes what the socket did not take at
/// once. The thread holds the link; `close()` ends it.
final class Link: Sendable {
    /// Bytes on their way out; wiped when they have gone, for they may hold a PIN.
    private final class Outgoing: Sendable {
        let bytes: Secret
        let done = OneShot<Result<Void, ClientError>>()

        init(_ bytes: consuming Secret) { self.bytes = bytes }
    }

    private struct State {
        var isClosed = false
        var queue: [Outgoing] = []
        /// What a broken connection did not take; its reading side will tell why.
        var unsent: [Outgoing] = []
        /// Bytes of the first in the queue that have gone.
        var sent = 0
        /// Until then badged has time to say something; nil: it owes nothing.
        var deadline: ContinuousClock.Instant?
        /// The command whose answer shows that all others were heard: lines are answered in order. nil for lines of the
        /// application's own making.
        var lastCommand: RequestID?
        var hasAskedForLife = false
    }

    let inbox: Inbox
    private let socket: UnixSocket
    private let patience: Duration
    private let state = Mutex(State())
    /// The mark of this side's own question.
    private static let lifeQuestion = RequestID(text: "badged-client-alive")

    private init(_ socket: consuming UnixSocket, inbox: Inbox, patience: Duration) {
        self.socket = socket
        self.inbox = inbox
        self.patience = patience
    }

    /// Connects and starts the thread.
    static func open(_ path: String, inbox: Inbox, patience: Duration) async throws(ClientError) -> Link {
        // Connecting may block for a while, which no thread of the shared pool should.
        let opened = OneShot<Result<Link, ClientError>>()
        let started = startThread {
            let link: Link
            do throws(ClientError) {
                link = Link(try UnixSocket(connectingTo: path), inbox: inbox, patience: patience)
            } catch {
                opened.fill(.failure(error))
                return
            }
            inbox.whenThereIsRoom { [weak link] in link?.socket.wake() }
            opened.fill(.success(link))
            link.run()
        }
        if !started { opened.fill(.failure(.unreachable(path: path, cause: "no thread can be started"))) }
        let result = await opened.value(whenCancelled: .failure(.cancelled))
        return try result.get()
    }

    /// Ends the connection; what was not sent yet is not sent.
    func close() {
        state.withLock { $0.isClosed = true }
        socket.wake()
    }

    /// Sends a command, or lines of the application's own making, after all earlier ones; returns when the system has
    /// taken them.
    func send(_ bytes: consuming Secret, _ id: RequestID? = nil) async throws(ClientError) {
        let outgoing = Outgoing(bytes)
        let mustWake = state.withLock { state in
            guard !state.isClosed else {
                outgoing.done.fill(.failure(inbox.ending ?? .closed))
                return false
            }
            state.queue.append(outgoing)
            if state.queue.count == 1 { flush(&state) }
            let isFirst = state.deadline == nil
            state.deadline = .now + patience
            (state.lastCommand, state.hasAskedForLife) = (id, false)
            return isFirst || !state.queue.isEmpty
        }
        if mustWake { socket.wake() }
        let result = await outgoing.done.value(whenCancelled: .failure(.cancelled))
        try result.get()
    }

    /// Writes what the socket takes. A broken connection is left to the reading side to tell.
    private func flush(_ state: inout State) {
        while let first = state.queue.first {
            let count = first.bytes.withBytes { bytes -> Int? in
                socket.send(UnsafeRawBufferPointer(rebasing: bytes[state.sent...]))
            }
            guard let count else {
                (state.unsent, state.queue) = (state.unsent + state.queue, [])
                return
            }
            state.sent += count
            guard state.sent == first.bytes.count else { return }
            first.done.fill(.success(()))
            state.queue.removeFirst()
            state.sent = 0
        }
    }

    // MARK: The thread

    private func run() {
        let ending: ClientError
        do throws(ClientError) {
            try pump()
            ending = .closed
        } catch {
            ending = error
        }
        // At once: nothing may go out behind the end that the events tell of.
        state.withLock { state in
            state.isClosed = true
            inbox.end(ending)
            for outgoing in state.unsent + state.queue { outgoing.done.fill(.failure(ending)) }
            (state.unsent, state.queue) = ([], [])
        }
        socket.shutDown()
    }

    /// Reads and writes until either side closes.
    private func pump() throws(ClientError) {
        let buffer = LineBuffer()
        // What badged says to somebody for whom it has no place, and then closes; nil when there was anything else.
        var refusal: String?
        var isFirst = true
        while true {
            let (isClosed, hasOutput, deadline) = state.withLock { ($0.isClosed, !$0.queue.isEmpty, $0.deadline) }
            if isClosed { return }
            // While nothing is read it is not badged that is slow.
            let isReading = !inbox.isFull
            let ready = socket.wait(toRead: isReading, toWrite: hasOutput, until: isReading ? deadline : nil)
            if ready.canWrite { state.withLock { flush(&$0) } }
            guard ready.canRead else {
                if isReading { try askForLife() }
                continue
            }
            let count = buffer.fill { socket.receive(into: $0) ?? -1 }
            if count == 0 {
                if let refusal { throw .notServed(refusal) }
                return
            }
            while let line = buffer.next() {
                switch line {
                case .text(let text):
                    guard !text.isEmpty else { continue }
                    let event = try Event(text)
                    if isFirst, !event.isAnswer, case .internalError(let error) = event.message {
                        refusal = error
                    } else {
                        refusal = nil
                    }
                    isFirst = false
                    take(event)
                case .tooLong: throw .malformed("a line is longer than \(LineBuffer.maximumLine) bytes")
                }
            }
        }
    }

    private func take(_ event: Event) {
        let isOurs = state.withLock { state in
            let isOurs = event.answers(Self.lifeQuestion)
            if isOurs || state.lastCommand.map(event.answers) ?? false {
                state.deadline = nil
            } else if state.deadline != nil {
                state.deadline = .now + patience
            }
            return isOurs
        }
        if !isOurs { inbox.deliver(event) }
    }

    /// When badged has said nothing for too long: the first time it may have nothing to say, which GET_API_LEVEL shows.
    private func askForLife() throws(ClientError) {
        let isDead = state.withLock { state in
            guard let deadline = state.deadline, deadline <= .now else { return false }
            guard !state.hasAskedForLife else { return true }
            state.hasAskedForLife = true
            state.deadline = .now + patience
            state.queue.append(Outgoing(CommandText.line("GET_API_LEVEL", Self.lifeQuestion, [])))
            if state.queue.count == 1 { flush(&state) }
            return false
        }
        if isDead { throw .noAnswer }
    }
}
