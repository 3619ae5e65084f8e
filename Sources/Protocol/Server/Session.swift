// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
package import Host
import Text
package import Wire

/// One client: its socket, its API level, its permissions and at most one workflow.
@Loop package final class Session {
    package let server: SocketServer
    package let permissions: Permissions
    /// The name of the client in the log.
    package let name: String
    /// The user of the client; nil if the kernel does not report it.
    package let uid: UInt32?

    package internal(set) var level = APILevel.three
    /// Whether STATUS is sent without GET_STATUS: the last boolean `status` of a RUN command.
    package var wantsStatus = true
    package private(set) var workflow: Workflow?
    private var promptCount = 0
    /// The commands that were refused for lack of a permission.
    private var refused: Set<String> = []

    private let socket: Int32
    private var registration: Loop.Registration?
    private let input = LineBuffer()
    private var outbox = Outbox()
    private var writer = JSONWriter()

    /// Whether an answer is being prepared. No lines are handled then, so that answers stay in order.
    private var isDeferring = false
    private var isHandling = false
    private var hasInputEnded = false
    private var isClosed = false
    private var endWaiters: [CheckedContinuation<Void, Never>] = []

    init(
        _ socket: Int32,
        _ permissions: Permissions,
        name: String,
        uid: UInt32?,
        server: SocketServer
    ) throws(SystemError) {
        (self.socket, self.permissions, self.name, self.server) = (socket, permissions, name, server)
        self.uid = uid
        registration = try Loop.watch(socket, .read) { [weak self] events in self?.ready(events) }
    }

    func start() {
        server.log(.debug, "\(name) connected")
        isHandling = true
        for feature in server.features { feature.sessionBegan(self) }
        isHandling = false
        flush()
    }

    // MARK: Commands

    private func handle(_ line: UnsafeRawBufferPointer) {
        let command: Command
        do throws(JSONError) {
            command = try Command(scanning: line)
        } catch {
            return answer(Refusal.Invalid(error: error.message), nil)
        }
        guard let name = command.name else {
            return answer(Refusal.Invalid(error: "Command cannot be undefined"), to: command)
        }
        guard let spec = server.commands[name], level >= spec.level else {
            return answer(Refusal.UnknownCommand(error: name), to: command)
        }
        guard permissions.contains(spec.permission) else {
            // Once for each command, so that a client cannot fill the log.
            if refused.insert(name).inserted {
                server.log(.notice, "\(self.name): \(name) refused, [access] does not grant the permission")
            }
            return answer(Refusal.AccessDenied(error: name), to: command)
        }
        switch spec.perform(self, command) {
        case .answered: break
        case .badState: answer(Refusal.BadState(error: name), to: command)
        }
    }

    // MARK: Workflow

    /// Why no workflow may start now, although the session runs none; nil if one may start. `[server] max_workflows`.
    package func workflowRefusal() -> String? {
        guard let refusal = server.workflowRefusal(of: self) else { return nil }
        server.log(.notice, "\(name): workflow refused. \(refusal)")
        return refusal
    }

    /// Starts a workflow in a session without one. `first` is the first message, and `body` returns the final one.
    @discardableResult
    package func start(
        _ name: String,
        announcedBy first: some Message,
        _ body: @escaping @Loop (Workflow) async -> any Message
    ) -> Workflow {
        let workflow = Workflow(name, self)
        self.workflow = workflow
        push(first)
        workflow.start { await body(workflow) }
        return workflow
    }

    func workflowEnded() {
        workflow = nil
        if isClosed {
            leave()
        } else {
            flush()
        }
    }

    func nextPromptNumber() -> Int {
        promptCount += 1
        return promptCount
    }

    // MARK: Input

    private func ready(_ events: UInt32) {
        if events & Loop.hungUp != 0 { return close("the client closed the connection") }
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

    /// Whether reading is paused: until the client has read its answers, and until a deferred answer is complete.
    private var isPaused: Bool { isDeferring || outbox.backlog > Outbox.highWater }

    private func handleLines() {
        guard !isHandling else { return }
        isHandling = true
        while !isClosed {
            if outbox.backlog > Outbox.highWater, outbox.flush(to: socket) == .failed { break }
            guard !isPaused, let line = input.next() else { break }
            switch line {
            case .text(let text): handle(text)
            case .tooLong:
                let error = "line too long (more than \(LineBuffer.maximumLine) bytes)"
                answer(Refusal.Invalid(error: error), nil)
            }
        }
        isHandling = false
        flush()
        if hasInputEnded, !isPaused, !isClosed { inputEnded() }
    }

    /// Called when the client has closed its side and all its lines are handled. Ends its workflow; answers are still
    /// sent.
    private func inputEnded() {
        if let workflow {
            workflow.cancel()
        } else if outbox.isEmpty {
            close("the client has finished")
        }
        updateInterest()
    }

    /// Runs work that takes time. The lines after the command wait for its end.
    package func deferLines(_ work: @escaping @Loop () async -> Void) {
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

    /// Sends the direct answer to a command.
    package func answer(_ message: some Message, to command: Command) { answer(message, command.request) }

    /// Sends the direct answer to a command whose line is no longer in the buffer.
    package func answer(_ message: some Message, to request: SavedRequest) {
        guard let text = request.text else { return answer(message, nil) }
        text.withUnsafeBytes { answer(message, $0) }
    }

    /// Prepares the direct answer to a command. The lines after the command wait for the answer.
    package func answerLater(to command: Command, _ message: @escaping @Loop () async -> (any Message)?) {
        let request = SavedRequest(command)
        deferLines { [self] in
            if let message = await message() { answer(message, to: request) }
        }
    }

    private func answer(_ message: some Message, _ request: UnsafeRawBufferPointer?) {
        guard !isClosed else { return }
        encode(message, request)
        outbox.append(answer: writer.bytes)
        if !isHandling { flush() }
    }

    /// Sends a message that is not an answer. While the client has a backlog, only the newest message of each `key` is
    /// kept.
    package func push(_ message: some Message, coalescing key: String? = nil) {
        guard !isClosed else { return }
        guard append(message, coalescing: key) else {
            server.log(.warning, "\(name) does not read and is disconnected")
            return close("the client does not read")
        }
        if !isHandling { flush() }
    }

    /// Sends a message as `push` does, unless the client is slow to read. For messages of which a client may miss some.
    /// - Returns: false when the message was not sent.
    package func offer(_ message: some Message) -> Bool {
        guard !isClosed, outbox.hasRoom else { return false }
        push(message)
        return true
    }

    private func append<M: Message>(_ message: M, coalescing key: String?) -> Bool {
        guard M.isSecret else {
            encode(message, nil)
            return outbox.append(event: writer.bytes, coalescing: key)
        }
        writer.prepareForSecret()
        message.encode(to: &writer, level)
        defer { writer.wipe() }
        return outbox.append(secret: writer.bytes)
    }

    private func encode(_ message: some Message, _ request: UnsafeRawBufferPointer?) {
        writer.removeAll()
        message.encode(to: &writer, level, request: request)
    }

    private func flush() {
        guard !isClosed, !isHandling else { return }
        let wasPaused = isPaused
        switch outbox.flush(to: socket) {
        case .failed: return close("the client closed the connection")
        case .blocked, .done: break
        }
        updateInterest()
        if wasPaused, !isPaused { handleLines() }
        if hasInputEnded, outbox.isEmpty, workflow == nil, !isPaused, !isHandling { close("the client has finished") }
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

    // MARK: End

    /// Ends the session: cancels its workflow, and sends the final message before the connection closes.
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

    private func close(_ reason: String) {
        guard !isClosed else { return }
        isClosed = true
        server.log(.debug, "\(name) disconnected: \(reason)")
        registration?.cancel()
        Glibc.close(socket)
        outbox.wipe()
        for feature in server.features { feature.sessionEnded(self) }
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

/// The `request` of a command, copied because the line is valid only while it is handled.
package struct SavedRequest: Sendable {
    fileprivate let text: [UInt8]?

    package init(_ command: Command) { text = command.request.map { Array($0) } }
}
