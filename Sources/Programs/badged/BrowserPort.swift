// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import HTTP
import Host
import Server
import Text

/// The daemon's side of the browser port. It listens, and starts badged-activation with the first connection.
/// badged-activation serves all connections, and asks the daemon for a session for each of them. It is asked whether it
/// lives when somebody connects, and while such sessions are open.
@Loop final class BrowserPort {
    private let listeners: [Int32]
    private let port: UInt16
    /// What `[activation]` allows. `[access]` allows less to some users.
    private let permissions: Permissions
    private let access: AccessControl
    /// The connections whose permissions are looked up.
    private var arriving = 0
    private let origins: [String]
    private let server: SocketServer
    private var watchers: [Loop.Registration] = []
    private var program: Run?
    private var backOff = BackOff()
    private lazy var restart = Loop.Alarm { [weak self] in self?.waitForConnection() }
    private lazy var nextCheck = Loop.Alarm { [weak self] in
        for watcher in self?.watchers ?? [] { watcher.change(Self.connections) }
    }
    /// The sessions of clients of the port.
    private var sessions: Set<ObjectIdentifier> = [] {
        didSet { program?.heartbeat.isNeeded = !sessions.isEmpty }
    }
    /// Why badged-activation does not run, until it may be started again.
    private(set) var fault: Phrase?

    /// A run of badged-activation.
    private struct Run {
        let descriptor: Int32
        let registration: Loop.Registration
        let process: Child
        let heartbeat: Heartbeat
    }

    /// New connections that badged-activation is to accept.
    private static let connections: Loop.Interest = [.read, .once]
    /// Milliseconds between two questions because of connections.
    private static let checkPause: Int64 = 1000

    /// Serves clients of listening sockets.
    init(_ listeners: [Int32], _ configuration: Configuration, _ server: SocketServer, _ access: AccessControl) {
        self.listeners = listeners
        self.server = server
        self.access = access
        port = configuration.activationPort
        permissions = configuration.activationPermissions
        origins = configuration.activationOrigins
        Log.info("browsers are served at port \(configuration.activationPort)")
        waitForConnection()
    }

    private func waitForConnection() {
        fault = nil
        watch(.read) { [weak self] in self?.startProgram() }
    }

    /// Watches the listeners.
    private func watch(_ interest: Loop.Interest, _ body: @escaping @Loop () -> Void) {
        for watcher in watchers { watcher.cancel() }
        watchers = []
        for listener in listeners {
            do throws(SystemError) {
                watchers.append(try Loop.watch(listener, interest) { _ in body() })
            } catch {
                Log.error("cannot wait for browsers: \(error.description)")
            }
        }
    }

    private func startProgram() {
        for watcher in watchers { watcher.cancel() }
        watchers = []
        var pair: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else {
            return programEnded("badged-activation cannot be started: no socket")
        }
        defer { close(pair[1]) }
        let own = ["--badged", Version.current, "--listeners", String(listeners.count)]
        let arguments = own + origins.flatMap { ["--origin", $0] }
        guard let path = ChildProcess.path(of: "badged-activation"),
            let id = ChildProcess.start(path, arguments, descriptors: [pair[1]] + listeners)
        else {
            close(pair[0])
            return programEnded("badged-activation is missing or cannot be started")
        }
        do throws(SystemError) {
            let registration = try Loop.watch(pair[0], .read) { [weak self] _ in self?.acceptClients() }
            let socket = pair[0]
            let heartbeat = Heartbeat("badged-activation") {
                _ = send(socket, Heartbeat.message, Heartbeat.message.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            } onSilence: { [weak self] in
                self?.end("badged-activation did not answer, and was ended")
            }
            program = Run(
                descriptor: socket,
                registration: registration,
                process: Child(id),
                heartbeat: heartbeat
            )
            backOff.started()
            heartbeat.isNeeded = !sessions.isEmpty
            // Only badged-activation accepts connections now. If it hangs, this is how badged sees that somebody waits.
            watch(Self.connections) { [weak self] in self?.connected() }
        } catch {
            close(pair[0])
            programEnded("badged-activation cannot be started: \(error.description)")
        }
    }

    /// Somebody has connected to the port.
    private func connected() {
        program?.heartbeat.check()
        for watcher in watchers { watcher.change([]) }
        nextCheck.set(after: Self.checkPause)
    }

    /// Ends badged-activation, also one that has sent an invalid message: it would keep the listening sockets.
    private func end(_ reason: Phrase) {
        guard let program else { return }
        self.program = nil
        program.heartbeat.stop()
        program.registration.cancel()
        close(program.descriptor)
        program.process.end()
        programEnded(reason)
    }

    private func acceptClients() {
        while let program {
            var note = [UInt8](repeating: 0, count: 64)
            var count: Int32 = 0
            let socket = clinux_take_descriptor(program.descriptor, &note, &count)
            if socket == -1 { return }
            let isAnswer = socket == -3 && Array(note.prefix(Int(count))) == Heartbeat.message
            if isAnswer, program.heartbeat.answered() { continue }
            guard socket >= 0 else { return end("badged-activation has ended unexpectedly") }
            clinux_set_nonblocking(socket)
            let uid = LoopbackClient(bytes: Array(note.prefix(Int(count))))?.user(connectedTo: port)
            serve(socket, uid)
        }
    }

    /// The largest number of connections whose permissions are looked up at once.
    private static let mostArriving = 64

    /// Serves a client with what both `[activation]` and `[access]` allow to its user. A client whose user the kernel
    /// does not report may only send ACTIVATE.
    private func serve(_ socket: Int32, _ uid: UInt32?) {
        let origin = "port for browsers, " + (uid.map { "uid \($0)" } ?? "unknown user")
        guard let uid else { return began(server.serve(socket, .activate, from: origin)) }
        guard arriving < Self.mostArriving else {
            close(socket)
            return
        }
        arriving += 1
        Task.immediate { @Loop in
            let allowed = await allowed(uid)
            arriving -= 1
            began(server.serve(socket, allowed, from: origin, uid: uid) { await self.allowed(uid) })
        }
    }

    private func began(_ session: Session?) {
        if let session, !session.hasLeft { sessions.insert(ObjectIdentifier(session)) }
    }

    func ended(_ session: Session) { sessions.remove(ObjectIdentifier(session)) }

    private func allowed(_ uid: UInt32) async -> Permissions {
        await access.permissions(ofUser: uid).intersection(permissions).union(.activate)
    }

    // MARK: Health

    /// Why browsers are not served now; nil if badged-activation answers, or starts with the next connection. One that
    /// does not answer is ended, as when it is stopped or runs without end: it would keep all browsers waiting.
    func currentFault() async -> Phrase? {
        _ = await program?.heartbeat.answers()
        return fault
    }

    /// Waits for the next connection, which starts the program again. The pause limits the restarts of a program that
    /// ends at once.
    private func programEnded(_ reason: Phrase) {
        nextCheck.cancel()
        for watcher in watchers { watcher.cancel() }
        watchers = []
        fault = reason
        let pause = backOff.next()
        Log.warning("\(reason); browsers are served again in \(pause / 1000) s")
        restart.set(after: pause)
    }
}
