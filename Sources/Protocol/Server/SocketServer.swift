// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
package import Host
import Text

/// Accepts clients and keeps one session for each. The features provide the commands.
@Loop package final class SocketServer {
    package typealias LogFunction = @Loop (Log.Level, String, Log.Fields) -> Void

    package let features: [any Feature]
    let commands: [String: CommandSpec]
    let info: ServerInfo
    /// They may change at any time.
    package var limits: ServerLimits
    private let permissions: @Loop (Peer) async -> Permissions
    private var listener: Listener?
    private var sessionsByID: [ObjectIdentifier: Session] = [:]
    private var sessionCount = 0
    private var clientsByUser: [UInt32?: Int] = [:]
    let turns = Turns()
    let holdings = Holdings()
    let logLimit: LogLimit
    /// For each user, the clients that wait to be served, and those whose permissions are not known yet.
    private var arriving: [UInt32: Int] = [:]
    private var arrivals = Arrivals()
    private var isServingLater = false
    private var isStopped = false
    private var refusedClients = LabelledCounter(
        "badged_clients_refused_total",
        "Clients that were refused: too many of them, no descriptor left, or unknown user.",
        by: "reason"
    )
    var endedWorkflows = LabelledCounter(
        "badged_workflows_total",
        "Workflows that have ended.",
        by: "workflow",
        "result"
    )
    /// Messages that a newer one has replaced, and messages that were dropped, because their client reads too slowly.
    var droppedMessages = 0
    /// Called when a client has come, and when one has left and its workflow has ended.
    package var onClientsChange: @Loop () -> Void = {}

    package init(
        features: [any Feature],
        info: ServerInfo,
        limits: ServerLimits,
        permissions: @escaping @Loop (Peer) async -> Permissions,
        log: @escaping LogFunction
    ) {
        self.features = [CoreFeature()] + features
        commands = self.features.reduce(into: [:]) { table, feature in
            for spec in feature.commands {
                for name in [spec.name] + spec.aliases { table[name] = spec.named(name) }
            }
        }
        self.info = info
        self.limits = limits
        self.permissions = permissions
        logLimit = LogLimit(log)
    }

    /// Logs a line that a client of this user has caused. The number of lines is limited.
    func log(_ level: Log.Level, _ text: String, _ fields: Log.Fields = Log.Fields(), for uid: UInt32?) {
        logLimit.write(level, text, fields, for: uid)
    }

    package var sessions: some Sequence<Session> { sessionsByID.values }

    package var specs: [CommandSpec] { Array(commands.values) }

    /// What the server itself counts, for GET_METRICS.
    var metrics: [Metric] {
        var workflows: [String: Int] = [:]
        for session in sessions { if let name = session.workflow?.name { workflows[name, default: 0] += 1 } }
        return [
            .gauge("badged_clients", "Connected clients.", clientCount), refusedClients.metric,
            .gauge("badged_workflows", "Workflows that run.", by: "workflow", workflows), endedWorkflows.metric,
            .counter(
                "badged_messages_dropped_total",
                "Messages that were replaced or dropped, because their client reads too slowly.",
                droppedMessages
            ),
        ]
    }

    package var clientCount: Int { sessionsByID.count }

    /// Serves a listening, non-blocking Unix stream socket, which the caller still owns.
    /// - Throws: `SystemError` if the loop cannot watch the socket.
    package func listen(on socket: Int32) throws(SystemError) {
        var files = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0, files.rlim_cur < rlim_t(Int32.max) {
            firstReserved = Int32(files.rlim_cur) - Self.reservedDescriptors
        }
        listener = try Listener(socket) { [weak self] in self?.acceptClients($0) }
    }

    /// Ends all sessions after their workflows have released the cards. Returns at the end of the last session.
    package func stop() async {
        isStopped = true
        listener?.cancel()
        listener = nil
        while let client = arrivals.next() { close(client.socket) }
        // The authentication of a browser runs in another session, and is cancelled before the one of the browser ends.
        for session in sessions { session.workflow?.cancel() }
        for session in sessions { session.end(becauseOf: "the daemon ends") }
        while let session = sessionsByID.values.first { await session.waitForEnd() }
    }

    /// Has the workflows that still wait for a card send their final messages.
    package func abandonWorkflows() {
        for session in sessionsByID.values { session.workflow?.abandon() }
    }

    /// The number of descriptors that are reserved for readers and cards.
    private static let reservedDescriptors: Int32 = 16
    /// The number of further descriptors that only clients of root get.
    private static let reservedForRoot: Int32 = 8
    private var firstReserved = Int32.max

    /// The number of connections that are accepted in a turn of the loop. To accept one costs some microseconds, and the
    /// backlog of the kernel has thousands, in which a client of root may be the last.
    private static let accepted = 512
    /// The time for clients that are new, in a turn of the loop, in microseconds. To serve one costs much more.
    private static let share: Int64 = 5000

    private func acceptClients(_ listener: Listener) {
        defer { serveArrivals() }
        do throws(SystemError) {
            // Bounded, so that a flood of connections cannot delay the connected clients.
            for _ in 0..<Self.accepted {
                guard let socket = try listener.accept() else { return }
                arrive(socket)
            }
        } catch {
            log(.warning, "cannot accept a client: \(errorText(error.code))", for: nil)
        }
    }

    /// Serves one connected, non-blocking Unix stream socket, and owns the socket from now on.
    package func serve(_ socket: Int32) {
        arrive(socket)
        serveArrivals()
    }

    /// Refuses a client, or adds it to those that are served next.
    private func arrive(_ socket: Int32) {
        guard let peer = try? Peer(socket: socket) else {
            log(.warning, "a client was refused: its user and its groups cannot be read", for: nil)
            return refuse(socket, "user")
        }
        guard !Self.isGone(socket) else {
            log(.debug, "a client of uid \(peer.uid) has left before it was served", for: peer.uid)
            close(socket)
            return
        }
        arrive(socket, peer)
    }

    /// Whether a client has left and sent nothing. It takes no place from those who wait.
    private static func isGone(_ socket: Int32) -> Bool {
        var state = pollfd(fd: socket, events: 0, revents: 0)
        guard poll(&state, 1, 0) == 1, state.revents & Int16(POLLHUP) != 0 else { return false }
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) == 0
    }

    func arrive(_ socket: Int32, _ peer: Peer) {
        guard socket < firstReserved - (peer.uid == 0 ? 0 : Self.reservedForRoot) else {
            log(.warning, "a client of uid \(peer.uid) was refused: no descriptors are left for it", for: peer.uid)
            return refuse(socket, "descriptors")
        }
        guard hasRoom(for: peer.uid) else { return refuse(socket, "limit") }
        arriving[peer.uid, default: 0] += 1
        arrivals.add(Arrivals.Client(socket: socket, peer: peer))
    }

    /// Serves the clients that have arrived, in this turn of the loop and, if they are many, in later ones.
    func serveArrivals() {
        let end = Loop.clock + Self.share
        while let client = arrivals.next() {
            serve(client)
            guard Loop.clock < end else { break }
        }
        guard !arrivals.isEmpty, !isServingLater else { return }
        isServingLater = true
        // The loop runs this after it has looked for events.
        Task { @Loop in
            isServingLater = false
            serveArrivals()
        }
    }

    private func serve(_ client: Arrivals.Client) {
        let (socket, peer) = (client.socket, client.peer)
        Task.immediate { @Loop in
            let permissions = await permissions(peer)
            let others = (arriving[peer.uid] ?? 1) - 1
            arriving[peer.uid] = others > 0 ? others : nil
            begin(socket, permissions, from: "pid \(peer.pid), uid \(peer.uid)", uid: peer.uid) {
                await self.permissions(peer)
            }
        }
    }

    /// Serves a client of the browser port. `origin` is its name in the log, and `uid` its user, if the kernel reports
    /// it. `evaluate` returns the permissions by the rules at a later time; nil: they are fixed.
    /// - Returns: the session; nil if the client was refused.
    @discardableResult
    package func serve(
        _ socket: Int32,
        _ permissions: Permissions,
        from origin: String,
        uid: UInt32? = nil,
        evaluate: (@Loop () async -> Permissions)? = nil
    ) -> Session? {
        guard hasRoom(for: uid) else {
            refuse(socket, "limit")
            return nil
        }
        return begin(socket, permissions, from: origin, uid: uid, evaluate)
    }

    /// Evaluates the permissions of all clients by the current rules, and returns when this is done.
    package func evaluatePermissions() async {
        let evaluations = sessions.map { session in Task { @Loop in await session.evaluatePermissions() } }
        for evaluation in evaluations { await evaluation.value }
    }

    @discardableResult
    private func begin(
        _ socket: Int32,
        _ permissions: Permissions,
        from origin: String,
        uid: UInt32?,
        _ evaluate: (@Loop () async -> Permissions)?
    ) -> Session? {
        guard !isStopped else {
            close(socket)
            return nil
        }
        sessionCount += 1
        let name = "client \(sessionCount) (\(origin))"
        do throws(SystemError) {
            let session = try Session(
                socket,
                permissions,
                name: name,
                uid: uid,
                server: self,
                evaluate: evaluate
            )
            sessionsByID[ObjectIdentifier(session)] = session
            clientsByUser[uid, default: 0] += 1
            session.start()
            onClientsChange()
            return session
        } catch {
            log(.error, "cannot serve a client: \(error)", for: uid)
            return nil
        }
    }

    // MARK: Limits

    /// Whether one more client may connect. Clients without a known user count as one user.
    /// Root has a table of its own.
    private func hasRoom(for uid: UInt32?) -> Bool {
        let own = clientsByUser[uid, default: 0] + (uid.flatMap { arriving[$0] } ?? 0)
        // First, so that nobody loses a place to a client that is refused anyway.
        guard uid == 0 || own < limits.clientsOfOneUser else {
            let name = Self.text(uid)
            log(.warning, "a client of \(name) was refused: \(own) are connected (max_clients_per_user)", for: uid)
            return false
        }
        let all = clientCount + arriving.values.reduce(0, +)
        let root = clientsByUser[0, default: 0] + arriving[0, default: 0]
        guard (uid == 0 ? root : all - root) < limits.clients || makeRoom(for: uid, own) else {
            let name = Self.text(uid)
            log(.warning, "a client of \(name) was refused: \(limits.clients) are connected (max_clients)", for: uid)
            return false
        }
        return true
    }

    /// Disconnects the client of the user with the most clients that has been idle for the longest time. The user of the
    /// new client, who has `own`, must have fewer also afterwards.
    /// - Returns: false if there is no such client.
    private func makeRoom(for uid: UInt32?, _ own: Int) -> Bool {
        let others = clientsByUser.filter { $0.key != 0 }
        guard uid != 0, let greediest = others.max(by: { $0.value < $1.value }), greediest.value > own + 1 else {
            return false
        }
        let idle = sessions.filter { $0.uid == greediest.key && $0.isIdle }
        guard let oldest = idle.min(by: { $0.lastUse < $1.lastUse }) else { return false }
        let user = Self.text(uid)
        log(.notice, "\(oldest.name) is disconnected: idle, and \(user) needs its place (max_clients)", for: oldest.uid)
        oldest.end(becauseOf: "another user needs its place")
        return true
    }

    /// Returns why a session may not start a workflow now; nil if it may start one. Root has a table of its own.
    func workflowRefusal(of session: Session) -> Phrase? {
        let running = sessionsByID.values.filter { $0.workflow != nil && ($0.uid == 0) == (session.uid == 0) }
        if running.count >= limits.workflows {
            return "Too many workflows are running (max_workflows = \(limits.workflows)): try again when one has ended"
        }
        let own = limits.workflowsOfOneUser
        if session.uid != 0, running.count(where: { $0.uid == session.uid }) >= own {
            return "Too many workflows of this user are running (max_workflows_per_user = \(own)):"
                + " try again when one has ended"
        }
        return nil
    }

    nonisolated static func text(_ uid: UInt32?) -> String { uid.map { "uid \($0)" } ?? "an unknown user" }

    /// What a client hears that is refused.
    private static let refusal: [UInt8] = {
        var writer = JSONWriter()
        Refusal.InternalError(error: "Cannot process request").encode(to: &writer, .three)
        return writer.bytes + [0x0A]
    }()

    private func refuse(_ socket: Int32, _ reason: String) {
        refusedClients.add(reason)
        _ = send(socket, Self.refusal, Self.refusal.count, Int32(MSG_NOSIGNAL))
        close(socket)
    }

    func sessionEnded(_ session: Session) {
        sessionsByID[ObjectIdentifier(session)] = nil
        let rest = clientsByUser[session.uid, default: 1] - 1
        clientsByUser[session.uid] = rest > 0 ? rest : nil
        // It may have paused for a descriptor.
        listener?.isReading = true
        onClientsChange()
    }
}
