// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import Text

/// One client: its connection, its API level, its permissions and at most one workflow.
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
    var refused: Set<String> = []
    /// The time of the last command, or of the begin.
    var lastUse = Loop.now

    let stream: SocketStream
    let input = LineBuffer()
    var outbox: Outbox
    var writer = JSONWriter()

    enum Connection {
        case open
        /// The client has closed its half, or the session is to end: nothing more is read, and answers are still sent.
        case finishing
        /// The client has left. Its last lines may still have to be handled, and answers are dropped.
        case left
        /// As `left`, and the kernel holds none of its bytes any more.
        case drained
        case closed
    }

    /// What happens to the lines of the client.
    enum Work {
        case idle
        /// The session waits in `Turns`.
        case waiting
        /// Lines are handled. Messages are sent together afterwards.
        case handling
        /// An answer is being prepared. No lines are handled then, so that answers stay in order.
        case deferring
    }

    var endWaiters: [CheckedContinuation<Void, Never>] = []
    var connection = Connection.open { didSet { updateInterest() } }
    var work = Work.idle { didSet { updateInterest() } }

    init(
        _ socket: Int32,
        _ permissions: Permissions,
        name: String,
        uid: UInt32?,
        server: SocketServer,
        evaluate: (@Loop () async -> Permissions)?
    ) throws(SystemError) {
        self.evaluate = evaluate
        self.permissions = permissions
        self.name = name
        self.server = server
        self.uid = uid
        stream = SocketStream(socket)
        outbox = Outbox(stream)
        try stream.start { [weak self] events in self?.ready(events) }
    }

    /// Logs a line that this client has caused. The number of lines of a user is limited. `reader` is the one that the
    /// line is about; nil: that of the workflow.
    package func log(_ level: Log.Level, _ text: String, reader: String? = nil) {
        let fields = Log.Fields(workflow: workflow?.name, reader: reader ?? workflow?.reader)
        server.log(level, text, fields, for: uid)
    }

    func start() {
        log(.debug, "\(name) connected")
        work = .handling
        for feature in server.features { feature.sessionBegan(self) }
        work = .idle
        flush()
    }

    // MARK: Permissions

    /// Evaluates the permissions by the current rules. What depends on a permission that is lost ends.
    func evaluatePermissions() async {
        guard let new = await evaluate?(), connection != .closed, new != permissions else { return }
        let old = permissions
        permissions = new
        log(.notice, "\(name): its permissions have changed, by [access]")
        if let workflow, !workflow.permission.isSubset(of: new) { workflow.deny() }
        for feature in server.features { feature.permissionsChanged(self, from: old) }
    }

    // MARK: Workflow

    /// Why no workflow may start now, although the session runs none; nil if one may start. `[server] max_workflows`.
    package func workflowRefusal() -> Phrase? {
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
        if connection == .closed {
            leave()
        } else {
            flush()
        }
    }

    func nextPromptNumber() -> Int {
        promptCount += 1
        return promptCount
    }

    // MARK: Memory

    /// The longest line for a client without any permission, and while the clients of its user hold much memory.
    private static let shortLine = 4096
    /// The memory for a command that is being executed: this number of bytes for each byte of its line.
    static let workFactor = 8

    /// The bytes for the command that is being handled, if its execution goes on.
    var lineBytes = 0
    private var workflowBytes = 0
    var deferredBytes = 0
    /// The bytes that the server has counted.
    private var counted = 0

    /// The longest line that is taken now, and the reason for a short one.
    var lineLimit: (bytes: Int, reason: String) {
        if permissions.isEmpty { return (Self.shortLine, ": [access] gives this client no permission") }
        guard server.holdings.hasRoom(for: uid) else {
            return (Self.shortLine, " at this time: clients hold too much memory; try again later")
        }
        return (LineBuffer.maximumLine, "")
    }

    func account() {
        let new = workflowBytes + deferredBytes + (connection == .closed ? 0 : input.capacity + outbox.capacity)
        server.holdings.change(uid, by: new - counted)
        counted = new
    }

    /// Disconnects a client that does not read if the clients of its user hold too much memory.
    func leaveIfTooLarge() {
        account()
        guard connection != .closed, !outbox.isSmall, !server.holdings.hasRoom(for: uid) else { return }
        log(.warning, "\(name) does not read and is disconnected: the clients of its user hold too much memory")
        close("the client does not read")
    }
}
