// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization
import Text

/// One open connection. A thread of its own waits for the socket, reads lines, and writes what the socket did not take
/// at once. The thread keeps the link alive until `close()` or the end of the connection.
final class Link: Sendable {
    /// Bytes that wait to be sent. They may hold a PIN, so they are wiped afterwards.
    private final class Outgoing: Sendable {
        let bytes: Secret
        let done = OneShot<Result<Void, ClientError>>()

        init(_ bytes: consuming Secret) { self.bytes = bytes }
    }

    private struct State {
        var isClosed = false
        var queue: [Outgoing] = []
        /// Bytes of the first entry of the queue that are sent.
        var sent = 0
        /// Whether the socket takes no more bytes. The next read reports why.
        var isBroken = false
        /// The time by which badged must have answered; nil: no command waits for an answer. Other messages do not move
        /// it: they do not show that badged reads commands.
        var deadline: ContinuousClock.Instant?
        /// The last command. badged answers in order, so its answer shows that badged has read all commands. nil for
        /// raw lines of the application.
        var lastCommand: RequestID?
        var hasPinged = false
        /// Whether the bytes end inside a line: more raw bytes of the application follow. A ping would damage the line.
        var isInsideLine = false
    }

    let inbox: Inbox
    private let socket: UnixSocket
    private let timeout: Duration
    private let state = Mutex(State())
    /// Identifies the ping: a GET_API_LEVEL that this side sends to see whether badged answers.
    private static let ping = RequestID(text: "badged-client-ping")

    private init(_ socket: consuming UnixSocket, inbox: Inbox, timeout: Duration) {
        self.socket = socket
        self.inbox = inbox
        self.timeout = timeout
    }

    /// Connects and starts the thread.
    static func open(_ path: String, inbox: Inbox, timeout: Duration) async throws(ClientError) -> Link {
        // Connecting may block, and the threads of Swift's pool must not.
        let opened = OneShot<Result<Link, ClientError>>()
        let started = startThread {
            let link: Link
            do throws(ClientError) {
                link = Link(try UnixSocket(connectingTo: path), inbox: inbox, timeout: timeout)
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

    /// Ends the connection. Bytes that still wait are not sent.
    func close() {
        state.withLock { $0.isClosed = true }
        socket.wake()
    }

    /// Sends a command, or raw lines, after all earlier ones. Returns when the system has taken the bytes.
    func send(_ bytes: consuming Secret, _ id: RequestID? = nil) async throws(ClientError) {
        // badged skips a longer line, and cannot say which command it was.
        if id != nil, bytes.count > LineBuffer.maximumLine + 1 {
            throw .refused("the command is longer than \(LineBuffer.maximumLine) bytes")
        }
        let endsLine = bytes.withBytes { $0.last == UInt8(ascii: "\n") }
        let outgoing = Outgoing(bytes)
        let mustWake = state.withLock { state in
            guard !state.isClosed else {
                outgoing.done.fill(.failure(inbox.ending ?? .closed))
                return false
            }
            state.queue.append(outgoing)
            if state.queue.count == 1 { flush(&state) }
            let isFirst = state.deadline == nil
            state.deadline = .now + timeout
            state.lastCommand = id
            state.hasPinged = false
            state.isInsideLine = !endsLine
            return isFirst || !state.queue.isEmpty
        }
        if mustWake { socket.wake() }
        let result = await outgoing.done.value(whenCancelled: .failure(.cancelled))
        try result.get()
    }

    /// Writes what the socket takes now.
    private func flush(_ state: inout State) {
        while !state.isBroken, let first = state.queue.first {
            let count = first.bytes.withBytes { bytes -> Int? in
                socket.send(UnsafeRawBufferPointer(rebasing: bytes[state.sent...]))
            }
            guard let count else {
                state.isBroken = true
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
        var refusal: Event?
        do throws(ClientError) {
            refusal = try pump()
            ending = refusal.map { .notServed($0.json["error"]?.string ?? $0.name) } ?? .closed
        } catch {
            ending = error
        }
        // In one step: after the end of the events nothing is sent.
        state.withLock { state in
            state.isClosed = true
            inbox.end(ending, after: refusal)
            for outgoing in state.queue { outgoing.done.fill(.failure(ending)) }
            state.queue = []
        }
        socket.shutDown()
    }

    /// Reads and writes until either side closes.
    /// - Returns: an INTERNAL_ERROR that was the first and the last message: badged serves no more clients, whatever the
    ///   command was.
    private func pump() throws(ClientError) -> Event? {
        let buffer = LineBuffer()
        var refusal: Event?
        var isFirst = true
        while true {
            let (isClosed, hasOutput, deadline) = state.withLock {
                ($0.isClosed, !$0.queue.isEmpty && !$0.isBroken, $0.deadline)
            }
            if isClosed { return nil }
            // While this side does not read, a missing answer is not a fault of badged.
            let isReading = !inbox.isFull
            // badged closes the connection at once if it serves no more clients.
            let end = refusal == nil ? deadline : .now + .seconds(1)
            let ready = socket.wait(toRead: isReading, toWrite: hasOutput, until: isReading ? end : nil)
            if ready.canWrite { state.withLock { flush(&$0) } }
            if !isReading { postponeDeadline() }
            guard ready.canRead else {
                if isReading, !ready.canWrite, let late = refusal.take() { receive(late) }
                if isReading { try checkDeadline() }
                continue
            }
            let count = buffer.fill { socket.receive(into: $0) ?? -1 }
            if count == 0 {
                return refusal
            }
            while let line = buffer.next() {
                switch line {
                case .text(let text):
                    guard !text.isEmpty else { continue }
                    let event = try Event(text)
                    if let earlier = refusal.take() { receive(earlier) }
                    let isRefusal = isFirst && !event.isAnswer && event.name == "INTERNAL_ERROR"
                    isFirst = false
                    if isRefusal { refusal = event } else { receive(event) }
                case .tooLong: throw .malformed(.tooLong)
                }
            }
            try checkDeadline()
        }
    }

    private func receive(_ event: Event) {
        let isPing = state.withLock { state in
            let isPing = event.answers(Self.ping)
            if isPing || state.lastCommand.map(event.answers) ?? false {
                state.deadline = nil
            }
            return isPing
        }
        if !isPing { inbox.deliver(event) }
    }

    private func postponeDeadline() {
        state.withLock { if $0.deadline != nil { $0.deadline = .now + timeout } }
    }

    /// Sends a ping when the answer of badged is late. Throws `noAnswer` when the ping has no answer either.
    private func checkDeadline() throws(ClientError) {
        let isSilent = state.withLock { state in
            guard let deadline = state.deadline, deadline <= .now else { return false }
            defer { state.deadline = .now + timeout }
            if state.isInsideLine {
                // badged cannot answer half a line. Only bytes that it does not take show that it is stuck.
                let isStuck = !state.queue.isEmpty
                defer { state.hasPinged = isStuck }
                return isStuck && state.hasPinged
            }
            guard !state.hasPinged else { return true }
            state.hasPinged = true
            state.queue.append(Outgoing(CommandText.line("GET_API_LEVEL", Self.ping, [])))
            if state.queue.count == 1 { flush(&state) }
            return false
        }
        if isSilent { throw .noAnswer }
    }
}
