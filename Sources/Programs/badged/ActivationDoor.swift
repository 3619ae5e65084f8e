// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import Host
import Server

/// The daemon's side of the door for browsers: it listens, and with the first connection starts badged-activation, which
/// serves this and all others and asks for a session for each. Until then nothing of it is in memory.
@Loop final class ActivationDoor {
    private let listeners: [Int32]
    private let permissions: Server.Permissions
    private let origins: [String]
    private let server: SocketServer
    private var waiting: [Loop.Registration] = []
    private var life: (descriptor: Int32, registration: Loop.Registration)?
    private var rest: Loop.Timer?

    /// Listens when it returns.
    init(_ configuration: Configuration, _ server: SocketServer) throws(StartError) {
        self.server = server
        permissions = Server.Permissions(rawValue: Int(configuration.activationPermissions.rawValue)).union(.activate)
        origins = configuration.activationOrigins
        listeners = try LoopbackSockets.open(port: configuration.activationPort)
        Log.info("browsers are served at port \(configuration.activationPort)")
        waitForConnection()
    }

    private func waitForConnection() {
        rest = nil
        for listener in listeners {
            do throws(SystemError) {
                waiting.append(try Loop.watch(listener, .read) { [weak self] _ in self?.startProgram() })
            } catch {
                Log.error("cannot wait for browsers: \(error.description)")
            }
        }
    }

    private func startProgram() {
        for registration in waiting { registration.cancel() }
        waiting = []
        var pair: [Int32] = [-1, -1]
        let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &pair) == 0 else { return programEnded("no socket") }
        defer { close(pair[1]) }
        let arguments = ["--listeners", String(listeners.count)] + origins.flatMap { ["--origin", $0] }
        guard let path = ChildProcess.path(of: "badged-activation"),
            ChildProcess.start(path, arguments, descriptors: [pair[1]] + listeners)
        else {
            close(pair[0])
            return programEnded("it is not there, or cannot be started")
        }
        do throws(SystemError) {
            let registration = try Loop.watch(pair[0], .read) { [weak self] _ in self?.takeClients() }
            life = (pair[0], registration)
        } catch {
            close(pair[0])
            programEnded(error.description)
        }
    }

    private func takeClients() {
        while let life {
            let socket = clinux_take_descriptor(life.descriptor)
            if socket == -1 { return }
            guard socket >= 0 else {
                life.registration.cancel()
                close(life.descriptor)
                self.life = nil
                return programEnded("it has ended")
            }
            clinux_set_nonblocking(socket)
            server.serve(socket, permissions, from: "port for browsers")
        }
    }

    /// The next connection starts it again, though not within the second: a program that cannot live must not keep the
    /// daemon busy.
    private func programEnded(_ reason: String) {
        Log.warning("badged-activation: \(reason)")
        do throws(SystemError) {
            rest = try Loop.Timer(every: .seconds(1)) { [weak self] in self?.waitForConnection() }
        } catch {
            waitForConnection()
        }
    }
}
