// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import Host
import Server

/// The daemon's side of the browser port. It listens, and starts badged-activation with the first connection.
/// badged-activation serves all connections, and asks the daemon for a session for each of them.
@Loop final class BrowserPort {
    private let listeners: [Int32]
    private let port: UInt16
    private let permissions: Permissions
    private let origins: [String]
    private let server: SocketServer
    /// The listeners are watched while badged-activation does not run.
    private var watchers: [Loop.Registration] = []
    /// The socket to badged-activation, while that runs, and the descriptor of its process.
    private var program: (descriptor: Int32, registration: Loop.Registration, process: Int32)?
    private var pause: Loop.Alarm?

    /// Listens at the port of the configuration.
    init(_ configuration: Configuration, _ server: SocketServer) throws(StartError) {
        self.server = server
        port = configuration.activationPort
        permissions = configuration.activationPermissions.union(.activate)
        origins = configuration.activationOrigins
        listeners = try LoopbackSockets.open(port: configuration.activationPort)
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
            let registration = try Loop.watch(pair[0], .read) { [weak self] _ in self?.takeClients() }
            program = (pair[0], registration, clinux_open_process(id))
        } catch {
            close(pair[0])
            programEnded(error.description)
        }
    }

    private func takeClients() {
        while let program {
            var note = [UInt8](repeating: 0, count: 64)
            var count: Int32 = 0
            let socket = clinux_take_descriptor(program.descriptor, &note, &count)
            if socket == -1 { return }
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
            let origin = "port for browsers, " + (uid.map { "uid \($0)" } ?? "unknown user")
            server.serve(socket, permissions, from: origin, uid: uid)
        }
    }

    /// Waits for the next connection, which starts the program again. The pause of a second limits the restarts of a
    /// program that ends at once.
    private func programEnded(_ reason: String) {
        Log.warning("badged-activation: \(reason)")
        pause = Loop.Alarm { [weak self] in self?.waitForConnection() }
        pause?.set(after: 1000)
    }
}
