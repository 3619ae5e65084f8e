// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import HTTP
import Host
import Server
import Threads

/// The daemon's side of the browser port. It listens, and starts badged-activation with the first connection.
/// badged-activation serves all connections, and asks the daemon for a session for each of them.
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
    /// The listeners are watched while badged-activation does not run.
    private var watchers: [Loop.Registration] = []
    /// The socket to badged-activation, while that runs, and the descriptor of its process.
    private var program: (descriptor: Int32, registration: Loop.Registration, process: Int32)?
    private var pause: Loop.Alarm?
    /// Those who wait for the next sign of life of badged-activation.
    private var waiting: [OneShot<Bool>] = []

    /// Listens at the port of the configuration.
    init(
        _ configuration: Configuration,
        _ network: Network,
        _ server: SocketServer,
        _ access: AccessControl
    ) throws(StartError) {
        (self.server, self.access) = (server, access)
        port = configuration.activationPort
        permissions = configuration.activationPermissions
        origins = configuration.activationOrigins
        listeners = try network.listen(port: configuration.activationPort)
        Log.info("browsers are served at port \(configuration.activationPort)")
        waitForConnection()
    }

    private func waitForConnection() {
        pause = nil
        for listener in listeners {
            do throws(SystemError) {
                watchers.append(try Loop.watch(listener, .read) { [weak self] _ in self?.startProgram() })
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
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { return programEnded("no socket") }
        defer { close(pair[1]) }
        let arguments = ["--listeners", String(listeners.count)] + origins.flatMap { ["--origin", $0] }
        guard let path = ChildProcess.path(of: "badged-activation"),
            let id = ChildProcess.start(path, arguments, descriptors: [pair[1]] + listeners)
        else {
            close(pair[0])
            return programEnded("the program is missing or cannot be started")
        }
        do throws(SystemError) {
            let registration = try Loop.watch(pair[0], .read) { [weak self] _ in self?.acceptClients() }
            program = (pair[0], registration, clinux_open_process(id))
        } catch {
            close(pair[0])
            programEnded(error.description)
        }
    }

    private func acceptClients() {
        while let program {
            var note = [UInt8](repeating: 0, count: 64)
            var count: Int32 = 0
            let socket = clinux_take_descriptor(program.descriptor, &note, &count)
            if socket == -1 { return }
            if socket == -3 {
                hear(true)
                continue
            }
            guard socket >= 0 else {
                program.registration.cancel()
                close(program.descriptor)
                // A program that has sent an invalid message may still run and hold the listening sockets.
                if program.process >= 0 {
                    clinux_kill_process(program.process)
                    close(program.process)
                }
                self.program = nil
                return programEnded("the program has ended")
            }
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
        guard let uid else { return server.serve(socket, .activate, from: origin) }
        guard arriving < Self.mostArriving else {
            close(socket)
            return
        }
        arriving += 1
        Task.immediate { @Loop in
            let allowed = await allowed(uid)
            arriving -= 1
            server.serve(socket, allowed, from: origin, uid: uid) { await self.allowed(uid) }
        }
    }

    private func allowed(_ uid: UInt32) async -> Permissions {
        await access.permissions(ofUser: uid).intersection(permissions).union(.activate)
    }

    // MARK: Health

    /// Milliseconds that badged-activation has for the answer to a ping.
    static let answerTime: Int64 = 2000

    /// Whether badged-activation answers, or starts with the next connection. One that does not answer is ended, as
    /// when it is stopped or runs without end: it would keep all browsers waiting.
    func answers() async -> Bool {
        guard let program else { return pause == nil }
        let answer = OneShot<Bool>()
        waiting.append(answer)
        var byte: UInt8 = 0
        _ = send(program.descriptor, &byte, 1, Int32(MSG_NOSIGNAL))
        let limit = Loop.Alarm { answer.fill(false) }
        limit.set(after: Self.answerTime)
        defer { limit.cancel() }
        if await answer.value(whenCancelled: false) { return true }
        if program.process >= 0, self.program?.process == program.process { clinux_kill_process(program.process) }
        return false
    }

    private func hear(_ isAlive: Bool) {
        for answer in waiting { answer.fill(isAlive) }
        waiting = []
    }

    /// Waits for the next connection, which starts the program again. The pause of a second limits the restarts of a
    /// program that ends at once.
    private func programEnded(_ reason: String) {
        hear(false)
        Log.warning("badged-activation: \(reason)")
        pause = Loop.Alarm { [weak self] in self?.waitForConnection() }
        pause?.set(after: 1000)
    }
}
