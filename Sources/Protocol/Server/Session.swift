// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Readers
import Text
import Wire
import Workflows

/// One client: its socket, its API level, its permissions and at most one workflow.
@Loop final class Session {
    let server: SocketServer
    let permissions: Permissions
    /// For the log.
    let name: String

    var level = APILevel.three
    /// STATUS is sent unasked; the last boolean `status` of a RUN command.
    var wantsStatus = true
    var workflow: RunningWorkflow?
    /// How many ENTER messages asked for something; the number of the last one.
    var questions = 0
    /// The authentication for whose end this connection of a browser waits; it runs in another session.
    var activated: RunningWorkflow?
    /// What it wants of the radio; nil: it does not scan.
    var scan: ScanSubscription?

    private let socket: Int32
    private var registration: Loop.Registration?
    private let input = LineBuffer()
    private var outbox = Outbox()
    private var writer = JSONWriter()
    /// What the client knows of each reader, as its level shows it.
    private var knownReaders: [String: ReaderState] = [:]

    /// Lines are not handled while an answer is being prepared elsewhere, so that answers stay in order.
    private var isDeferring = false
    private var isHandling = false
    private var hasInputEnded = false
    private var isClosed = false
    private var endWaiters: [CheckedContinuation<Void, Never>] = []

    init(_ socket: Int32, _ permissions: Permissions, name: String, server: SocketServer) throws(SystemError) {
        (self.socket, self.permissions, self.name, self.server) = (socket, permissions, name, server)
        registration = try Loop.watch(socket, .read) { [weak self] events in self?.ready(events) }
    }

    func start() {
        server.log(.debug, "\(name) connected")
        guard permissions.contains(.readers) else { return }
        isHandling = true
        for reader in server.registry.readers { tell(reader.name) }
        isHandling = false
        flush()
    }

    // MARK: Input

    private func ready(_ events: UInt32) {
        if events & Loop.hungUp != 0 { return close("it hung up") }
        if events & Loop.writable != 0 { flush() }
        guard events & Loop.readable != 0, !isClosed, !hasInputEnded, !isPaused else { return }
        let count = input.fill { recv(socket, $0.baseAddress, $0.count, 0) }
        if count < 0 {
            if errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR { return }
            return close(String(cString: strerror(errno)))
        }
        if count == 0 { hasInputEnded = true }
        handleLines()
    }

    /// The client gets no further attention until it has read what it asked for.
    private var isPaused: Bool { isDeferring || outbox.backlog > Outbox.highWater }

    private func handleLines() {
        guard !isHandling else { return }
        isHandling = true
        while !isClosed {
            if outbox.backlog > Outbox.highWater, outbox.flush(to: socket) == .failed { break }
            guard !isPaused, let line = input.next() else { break }
            switch line {
            case .text(let text): handle(text)
            case .tooLong: answer(.invalid("line too long (more than \(LineBuffer.maximumLine) bytes)"), nil)
            }
        }
        isHandling = false
        flush()
        if hasInputEnded, !isPaused, !isClosed { inputEnded() }
    }

    /// All that came before the end of the client's side is handled: its workflow ends, its answers are still sent.
    private func inputEnded() {
        if let workflow {
            workflow.cancel()
        } else if outbox.isEmpty {
            close("it has finished")
        }
        updateInterest()
    }

    /// Prepares an answer elsewhere; the lines behind wait for it.
    func deferLines(_ work: @escaping @Loop () async -> Void) {
        isDeferring = true
        updateInterest()
        Task { @Loop in
            await work()
            self.isDeferring = false
            self.handleLines()
            self.updateInterest()
        }
    }

    // MARK: Output

    /// The direct answer to a command.
    func answer(_ message: Message, _ request: UnsafeRawBufferPointer?) {
        guard !isClosed else { return }
        encode(message, request)
        outbox.append(answer: writer.bytes)
        if !isHandling { flush() }
    }

    /// A message nobody asked for just now.
    func push(_ message: Message, coalescing key: String? = nil) {
        guard !isClosed else { return }
        encode(message, nil)
        guard outbox.append(news: writer.bytes, coalescing: key) else {
            server.log(.warning, "\(name) does not read and is disconnected")
            return close("it does not read")
        }
        if !isHandling { flush() }
    }

    private func encode(_ message: Message, _ request: UnsafeRawBufferPointer?) {
        writer.removeAll()
        message.write(to: &writer, level: level, request: request)
    }

    private func flush() {
        guard !isClosed, !isHandling else { return }
        let wasPaused = isPaused
        switch outbox.flush(to: socket) {
        case .failed: return close("it hung up")
        case .blocked, .done: break
        }
        updateInterest()
        if wasPaused, !isPaused { handleLines() }
        if hasInputEnded, outbox.isEmpty, workflow == nil, !isPaused, !isHandling { close("it has finished") }
    }

    private var interest: Loop.Interest = .read

    private func updateInterest() {
        guard !isClosed else { return }
        var wanted: Loop.Interest = []
        if !hasInputEnded, !isPaused { wanted.insert(.read) }
        if !outbox.isEmpty { wanted.insert(.write) }
        guard wanted != interest else { return }
        interest = wanted
        registration?.change(wanted)
    }

    // MARK: Readers

    /// READER when what this client sees has changed, and the end of a question whose card has left.
    func readerChanged(_ name: String) {
        if permissions.contains(.readers) { tell(name) }
        workflow?.readerChanged(server.registry[name], named: name)
    }

    private func tell(_ name: String) {
        let state = shown(readerState(name))
        guard knownReaders[name] ?? ReaderState(name: name, attached: nil) != state else { return }
        knownReaders[name] = state.attached == nil ? nil : state
        push(.reader(state), coalescing: name)
    }

    /// Below level 3 an unknown card is no card.
    private func shown(_ state: ReaderState) -> ReaderState {
        var state = state
        if level < .three, state.attached?.card == .unknown { state.attached?.card = .none }
        return state
    }

    func readerState(_ name: String) -> ReaderState {
        guard let reader = server.registry[name] else { return ReaderState(name: name, attached: nil) }
        let card: CardState =
            switch reader.card {
            case .none, .identifying: .none
            case .unusable: .unknown
            case .eid:
                reader.eidState.map {
                    .eid(retryCounter: $0.retryCounter, deactivated: $0.deactivated, inoperative: $0.inoperative)
                } ?? .none
            }
        return ReaderState(
            name: name,
            attached: .init(
                insertable: reader.description.takesCards,
                keypad: reader.description.hasKeypad,
                card: card,
                busy: reader.owner != nil && reader.owner != workflow.map { ObjectIdentifier($0) }
            )
        )
    }

    // MARK: End

    /// From our side: the workflow is cancelled and its final message sent before the connection closes.
    func end(becauseOf reason: String) {
        hasInputEnded = true
        if let workflow {
            workflow.cancel()
        } else {
            _ = outbox.flush(to: socket)
            close(reason)
        }
    }

    func waitForEnd() async {
        guard !isClosed || workflow != nil else { return }
        await withCheckedContinuation { endWaiters.append($0) }
    }

    func workflowEnded() {
        workflow = nil
        if isClosed {
            leave()
        } else {
            flush()
        }
    }

    private func close(_ reason: String) {
        guard !isClosed else { return }
        isClosed = true
        server.log(.debug, "\(name) disconnected: \(reason)")
        registration?.cancel()
        Glibc.close(socket)
        endScan()
        activated?.browserLeft()
        activated = nil
        if let workflow {
            workflow.cancel()
        } else {
            leave()
        }
    }

    private func leave() {
        server.sessionEnded(self)
        for waiter in endWaiters { waiter.resume() }
        endWaiters = []
    }
}
