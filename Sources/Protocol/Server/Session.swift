// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
package import Host
import Text

/// One client: its socket, its API level, its permissions and at most one workflow.
@Loop package final class Session {
    package let server: SocketServer
    package private(set) var permissions: Permissions
    /// Returns the permissions by the current rules; nil if they are fixed.
    private let evaluate: (@Loop () async -> Permissions)?
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
    /// Whether the kernel may hold bytes of the client.
    private var isReadable = false
    /// Whether the client has closed its connection. Its last lines may still have to be handled.
    private var isGone = false
    /// Whether the session waits in `Turns`.
    var isWaiting = false { didSet { updateInterest() } }
    private var isClosed = false
    /// The time of the last command, or of the begin.
    private(set) var lastUse = Loop.now
    /// Whether nothing waits for the client, or for an answer to it.
    var isIdle: Bool {
        workflow == nil && !isDeferring && !isHandling && !isWaiting && !isReadable && !isClosed && outbox.isEmpty
    }
    /// Whether nobody receives its messages any more.
    package var hasLeft: Bool { isClosed || isGone }
    private var endWaiters: [CheckedContinuation<Void, Never>] = []

    init(
        _ socket: Int32,
        _ permissions: Permissions,
        name: String,
        uid: UInt32?,
        server: SocketServer,
        evaluate: (@Loop () async -> Permissions)?
    ) throws(SystemError) {
        self.evaluate = evaluate
        self.socket = socket
        self.permissions = permissions
        self.name = name
        self.server = server
        self.uid = uid
        registration = try Loop.watch(socket, .read) { [weak self] events in self?.ready(events) }
    }

    /// Logs a line that this client has caused. The number of lines of a user is limited. `reader` is the one that the
    /// line is about; nil: that of the workflow.
    package func log(_ level: Log.Level, _ text: String, reader: String? = nil) {
        let fields = Log.Fields(workflow: workflow?.name, reader: reader ?? workflow?.reader)
        server.log(level, text, fields, for: uid)
    }

    func start() {
        log(.debug, "\(name) connected")
        isHandling = true
        for feature in server.features { feature.sessionBegan(self) }
        isHandling = false
        flush()
    }

    // MARK: Commands

    private func handle(_ line: UnsafeRawBufferPointer) {
        lastUse = Loop.now
        lineBytes = Self.workFactor * line.count
        let command: Command
        do throws(Malformed) {
            command = try Command(scanning: line)
        } catch {
            return answer(Refusal.Invalid(error: error.text), nil)
        }
        guard let name = command.name else {
            return answer(Refusal.Invalid(error: "Command cannot be undefined"), to: command)
        }
        guard let (spec, feature) = server.commands[name], level >= spec.level else {
            return answer(Refusal.UnknownCommand(error: name), to: command)
        }
        guard permissions.contains(spec.permission) else { return deny(spec, command) }
        Requester.$uid.withValue(uid) { perform(Call(self, spec, command), feature) }
    }

    private func deny(_ spec: CommandSpec, _ command: Command) {
        let missing = spec.permission.subtracting(permissions).words
        // Once for each command, so that a client cannot fill the log.
        if refused.insert(spec.name).inserted {
            let words = missing.joined(separator: ", ")
            log(.notice, "\(name): \(spec.name) refused, [access] does not grant \(words)")
        }
        answer(Refusal.AccessDenied(error: spec.name, missing: missing, granted: permissions.words), to: command)
    }

    private func perform(_ call: Call, _ feature: any Feature) {
        guard workflow == nil || !call.spec.isForIdle else {
            return answer(Refusal.BadState(error: call.name), to: call)
        }
        switch call.spec.form {
        case .now(let method):
            do throws(Failure) {
                send(try method(call), call, feature)
            } catch {
                refuse(call, error, feature)
            }
        case .later(let method):
            // The line stays in the buffer meanwhile.
            deferLines { [self] in
                do throws(Failure) {
                    let reply = try await method(call)
                    Loop.shared.preconditionIsolated()
                    send(reply, call, feature)
                } catch {
                    Loop.shared.preconditionIsolated()
                    refuse(call, error, feature)
                }
            }
        }
    }

    private func send(_ reply: Reply, _ call: Call, _ feature: any Feature) {
        switch reply.content {
        case .none: break
        case .message(let message):
            answer(message, to: call)
            reply.then?()
        case .workflow(let name, let first, let refusal, let body):
            let spec = call.spec
            let refused = refusal ?? { [self] failure in feature.refusal(failure, of: spec, self) }
            // While an `async` method waited, the session may have ended, a browser may have started a workflow in it, or
            // its client may have lost the permission.
            guard !isClosed, workflow == nil else { return answer(Refusal.BadState(error: call.name), to: call) }
            guard permissions.contains(call.spec.permission) else { return deny(call.spec, call.command) }
            if let reason = workflowRefusal() {
                return send(refused(Failure(.tooManyWorkflows, reason)), call, feature)
            }
            if let flag = call.arguments["status"]?.bool { wantsStatus = flag }
            start(name, needs: spec.permission, announcedBy: first) { [self] workflow in
                do throws(Failure) {
                    let reply = try await body(workflow)
                    Loop.shared.preconditionIsolated()
                    server.endedWorkflows.add(name, "success")
                    return reply
                } catch {
                    Loop.shared.preconditionIsolated()
                    let isDenied = workflow.isDenied && error.code == .cancelled
                    let failure = isDenied ? Failure(.accessDenied, Workflow.denied) : error
                    server.endedWorkflows.add(name, failure.code == .cancelled ? "cancelled" : "failure")
                    note(failure, spec)
                    return refused(failure)
                }
            }
        }
    }

    private func refuse(_ call: Call, _ failure: Failure, _ feature: any Feature) {
        note(failure, call.spec)
        guard failure.code != .badState else { return answer(Refusal.BadState(error: call.name), to: call) }
        if case .message(let message) = feature.refusal(failure, of: call.spec, self).content {
            answer(message, to: call)
        }
    }

    /// Logs why a command has failed. What the client has caused is not notable.
    private func note(_ failure: Failure, _ spec: CommandSpec) {
        switch failure.code {
        case .badState, .wrongArgument, .missingArgument: break
        case .cancelled: log(.info, "\(name): \(spec.name) ended, cancelled")
        default: log(.notice, "\(name): \(spec.name) ended, \(failure.logText)")
        }
    }

    // MARK: Permissions

    /// Evaluates the permissions by the current rules. What depends on a permission that is lost ends.
    func evaluatePermissions() async {
        guard let new = await evaluate?(), !isClosed, new != permissions else { return }
        let old = permissions
        permissions = new
        log(.notice, "\(name): its permissions have changed, by [access]")
        if let workflow, !workflow.permission.isSubset(of: new) { workflow.deny() }
        for feature in server.features { feature.permissionsChanged(self, from: old) }
    }

    // MARK: Memory

    /// The longest line for a client without any permission, and while the clients of its user hold much memory.
    private static let shortLine = 4096
    /// The memory for a command that is being executed: this number of bytes for each byte of its line.
    private static let workFactor = 8

    /// The bytes for the command that is being handled, if its execution goes on.
    private var lineBytes = 0
    private var workflowBytes = 0
    private var deferredBytes = 0
    /// The bytes that the server has counted.
    private var counted = 0

    /// The longest line that is taken now, and the reason for a short one.
    private var lineLimit: (bytes: Int, reason: String) {
        if permissions.isEmpty { return (Self.shortLine, ": [access] gives this client no permission") }
        guard server.holdings.hasRoom(for: uid) else {
            return (Self.shortLine, " at this time: clients hold too much memory; try again later")
        }
        return (LineBuffer.maximumLine, "")
    }

    private func account() {
        let new = workflowBytes + deferredBytes + (isClosed ? 0 : input.capacity + outbox.capacity)
        server.holdings.change(uid, by: new - counted)
        counted = new
    }

    /// Disconnects a client that does not read if the clients of its user hold too much memory.
    private func leaveIfTooLarge() {
        account()
        guard !isClosed, outbox.capacity > Outbox.small, !server.holdings.hasRoom(for: uid) else { return }
        log(.warning, "\(name) does not read and is disconnected: the clients of its user hold too much memory")
        close("the client does not read")
    }

    // MARK: Workflow

    /// Why no workflow may start now, although the session runs none; nil if one may start. `[server] max_workflows`.
    package func workflowRefusal() -> String? {
        guard let refusal = server.workflowRefusal(of: self) else { return nil }
        log(.notice, "\(name): workflow refused. \(refusal)")
        return refusal
    }

    /// Starts a workflow in a session without one, which ends if the client loses `permission`. `first` is the first
    /// message, and `body` returns the final one.
    @discardableResult
    package func start(
        _ name: String,
        needs permission: Permissions,
        announcedBy first: some Message,
        _ body: @escaping @Loop (Workflow) async -> Reply
    ) -> Workflow {
        let workflow = Workflow(name, self, permission)
        self.workflow = workflow
        workflowBytes = lineBytes
        push(first)
        workflow.start {
            guard case .message(let end) = await body(workflow).content else { return nil }
            return end
        }
        return workflow
    }

    func workflowEnded() {
        workflow = nil
        workflowBytes = 0
        account()
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
        if events & Loop.writable != 0 { flush() }
        if events & Loop.hungUp != 0 { return peerLeft() }
        guard events & Loop.readable != 0, !isClosed, !hasInputEnded, !isPaused else { return }
        isReadable = true
        server.turns.enter(self)
    }

    /// Called when the client has closed its connection. The lines that the kernel still holds are handled, and answers
    /// are dropped.
    private func peerLeft() {
        guard !isClosed, !isGone else { return }
        isGone = true
        isReadable = true
        // The kernel would report the hang-up in each turn.
        registration?.cancel()
        outbox.discard()
        if hasInputEnded { return close("the client closed the connection") }
        // The lines wait for an answer that is being prepared; the card of a workflow does not.
        if isDeferring { workflow?.cancel() }
        server.turns.enterLater(self)
    }

    /// Whether reading is paused: until the client has read its answers, and until a deferred answer is complete.
    private var isPaused: Bool { isDeferring || outbox.backlog > Outbox.highWater }

    /// Reads and handles lines until there are no more, or until this time of `Loop.clock`.
    /// - Returns: whether there is more to do now.
    func work(until deadline: Int64) -> Bool {
        guard !isHandling, !isClosed else { return false }
        isHandling = true
        var hasMore = false
        while !isClosed {
            if !isGone, outbox.backlog > Outbox.highWater, outbox.flush(to: socket) == .failed { peerLeft() }
            guard !isClosed, !isPaused else { break }
            if let line = input.next() {
                handle(line)
            } else if isReadable, !hasInputEnded {
                fill()
            } else {
                break
            }
            guard Loop.clock < deadline else {
                hasMore = true
                break
            }
        }
        isHandling = false
        flush()
        account()
        if hasInputEnded, !hasMore, !isPaused, !isClosed { inputEnded() }
        return hasMore && !isClosed
    }

    private func fill() {
        // The end of the kernel's data shows when the client has left.
        isReadable = isGone
        input.limit = lineLimit.bytes
        defer { account() }
        let count = input.fill { recv(socket, $0.baseAddress, $0.count, 0) }
        guard count <= 0 else { return }
        if count < 0, errno == EINTR || !isGone && (errno == EAGAIN || errno == EWOULDBLOCK) { return }
        hasInputEnded = true
        if count < 0 { peerLeft() }
    }

    private func handle(_ line: LineBuffer.Line) {
        switch line {
        case .text(let text): handle(text)
        case .tooLong:
            let (bytes, reason) = lineLimit
            let error = "line too long (more than \(bytes) bytes\(reason))"
            answer(Refusal.Invalid(error: error), nil)
        }
    }

    /// Called when the client has closed its side and all its lines are handled. Ends its workflow; answers are still
    /// sent.
    private func inputEnded() {
        if isGone { return close("the client closed the connection") }
        if let workflow {
            workflow.cancel()
        } else if outbox.isEmpty {
            close("the client has finished")
        }
        updateInterest()
    }

    /// Runs work that takes time. The lines after the command wait for its end.
    private func deferLines(_ work: @escaping @Loop () async -> Void) {
        isDeferring = true
        // No client waits for the workflow any more, and the workflow may hold a card.
        if isGone { workflow?.cancel() }
        deferredBytes = lineBytes
        updateInterest()
        let then: @Loop () async -> Void = { [self] in
            await work()
            isDeferring = false
            deferredBytes = 0
            account()
            updateInterest()
            server.turns.enter(self)
        }
        Task(executorPreference: Pool.share(of: uid), operation: then)
    }

    // MARK: Output

    func answer(_ message: some Message, to call: Call) { answer(message, call.command.request) }

    private func answer(_ message: some Message, to command: Command) { answer(message, command.request) }

    /// Sends the direct answer to a command whose line is no longer in the buffer.
    package func answer(_ message: some Message, to request: SavedRequest) {
        guard let text = request.text else { return answer(message, nil) }
        text.withUnsafeBytes { answer(message, $0) }
    }

    private func answer(_ message: some Message, _ request: UnsafeRawBufferPointer?) {
        guard !isClosed, !isGone else { return }
        encode(message, request)
        outbox.append(answer: writer.bytes)
        writer.removeAll()
        if !isHandling { flush() }
        leaveIfTooLarge()
    }

    /// Sends a message that is not an answer. While the client has a backlog, only the newest message of each `key` is
    /// kept.
    package func push(_ message: some Message, coalescing key: String? = nil) {
        guard !isClosed, !isGone else { return }
        let isKept = append(message, coalescing: key)
        server.droppedMessages += outbox.takeReplaced() + (isKept ? 0 : 1)
        guard isKept else {
            log(.warning, "\(name) does not read and is disconnected")
            return close("the client does not read")
        }
        if !isHandling { flush() }
        leaveIfTooLarge()
    }

    /// Sends a message as `push` does, unless the client is slow to read. For messages of which a client may miss some.
    /// - Returns: false when the message was not sent.
    package func offer(_ message: some Message) -> Bool {
        guard !isClosed, !isGone else { return false }
        guard outbox.hasRoom else {
            server.droppedMessages += 1
            return false
        }
        push(message)
        return true
    }

    private func append(_ message: some Message, coalescing key: String?) -> Bool {
        guard message.isSecret else {
            encode(message, nil)
            defer { writer.removeAll() }
            return outbox.append(event: writer.bytes, coalescing: key)
        }
        writer.prepareForSecret(message.secretCapacity)
        message.encode(to: &writer, level)
        defer { writer.wipe() }
        return outbox.append(secret: writer.bytes)
    }

    private func encode(_ message: some Message, _ request: UnsafeRawBufferPointer?) {
        writer.removeAll()
        message.encode(to: &writer, level, request: request)
    }

    private func flush() {
        guard !isClosed, !isGone, !isHandling else { return }
        let wasPaused = isPaused
        if outbox.flush(to: socket) == .failed { return peerLeft() }
        account()
        updateInterest()
        if wasPaused, !isPaused { server.turns.enterLater(self) }
        if hasInputEnded, outbox.isEmpty, workflow == nil, !isPaused, !isWaiting { close("the client has finished") }
    }

    private var interest: Loop.Interest = .read

    private func updateInterest() {
        guard !isClosed, !isGone else { return }
        var wanted: Loop.Interest = []
        if !hasInputEnded, !isPaused, !isWaiting { wanted.insert(.read) }
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
        log(.debug, "\(name) disconnected: \(reason)")
        registration?.cancel()
        Glibc.close(socket)
        outbox.discard()
        account()
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

    init(_ command: Command) { text = command.request.map { Array($0) } }
}
