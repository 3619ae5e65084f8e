// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Concurrency
import Glibc
package import Host
import Text
package import Wire

/// Accepts clients and keeps one session for each. The features provide the commands.
@Loop package final class SocketServer {
    package typealias LogFunction = @Loop (Log.Level, String) -> Void

    package let features: [any Feature]
    let commands: [String: CommandSpec]
    let info: ServerInfo
    package let log: LogFunction
    private let maximumClients: Int
    private let permissions: @Loop (Peer) -> Permissions
    private var listener: Int32 = -1
    private var acceptance: Loop.Registration?
    private var sessionsByID: [ObjectIdentifier: Session] = [:]
    private var sessionCount = 0

    package init(
        features: [any Feature],
        info: ServerInfo,
        maximumClients: Int,
        permissions: @escaping @Loop (Peer) -> Permissions,
        log: @escaping LogFunction
    ) {
        self.features = [CoreFeature()] + features
        commands = self.features.reduce(into: [:]) { table, feature in
            for command in feature.commands { table[command.name] = command }
        }
        (self.info, self.maximumClients) = (info, maximumClients)
        (self.permissions, self.log) = (permissions, log)
    }

    package var sessions: some Sequence<Session> { sessionsByID.values }

    /// The names of all commands.
    package var commandNames: Set<String> { Set(commands.keys) }

    package var clientCount: Int { sessionsByID.count }

    /// Serves a listening, non-blocking Unix stream socket, which the caller still owns.
    /// - Throws: `SystemError` if the loop cannot watch the socket.
    package func listen(on socket: Int32) throws(SystemError) {
        listener = socket
        var files = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0, files.rlim_cur < rlim_t(Int32.max) {
            firstReserved = Int32(files.rlim_cur) - Self.reservedDescriptors
        }
        acceptance = try Loop.watch(socket, .read) { [weak self] _ in self?.acceptClients() }
    }

    /// Ends all sessions after their workflows have released the cards. Returns at the end of the last session.
    package func stop() async {
        acceptance?.cancel()
        acceptance = nil
        for session in sessions { session.end(becauseOf: "the daemon ends") }
        while let session = sessionsByID.values.first { await session.waitForEnd() }
    }

    /// The number of descriptors that are reserved for readers and cards.
    private static let reservedDescriptors: Int32 = 16
    private var firstReserved = Int32.max

    private func acceptClients() {
        // Bounded, so that a flood of connections cannot delay the connected clients.
        for _ in 0..<64 {
            let socket = clinux_accept(listener)
            if socket < 0 {
                switch errno {
                case EINTR, ECONNABORTED: continue
                case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                    log(.warning, "cannot accept a client: \(String(cString: strerror(errno)))")
                    // The listener stays readable, so the loop would never wait. The end of a session resumes
                    // accepting.
                    if !sessionsByID.isEmpty { acceptance?.change([]) }
                default: break
                }
                return
            }
            if socket < firstReserved {
                serve(socket)
            } else {
                log(.warning, "a client was refused: no descriptors are left for it")
                refuse(socket)
            }
        }
    }

    /// Serves one connected, non-blocking Unix stream socket, and owns the socket from now on.
    package func serve(_ socket: Int32) {
        guard let peer = try? Peer(socket: socket) else {
            log(.warning, "a client was refused: its credentials cannot be read")
            return refuse(socket)
        }
        serve(socket, permissions(peer), from: "pid \(peer.pid), uid \(peer.uid)")
    }

    /// Serves a client of the browser port, for which the kernel has no credentials. `origin` is its name in the log.
    package func serve(_ socket: Int32, _ permissions: Permissions, from origin: String) {
        guard clientCount < maximumClients else {
            log(.warning, "a client was refused: \(clientCount) are connected")
            return refuse(socket)
        }
        sessionCount += 1
        do throws(SystemError) {
            let session = try Session(socket, permissions, name: "client \(sessionCount) (\(origin))", server: self)
            sessionsByID[ObjectIdentifier(session)] = session
            session.start()
        } catch {
            log(.error, "cannot serve a client: \(error)")
            close(socket)
        }
    }

    private func refuse(_ socket: Int32) {
        var writer = JSONWriter()
        Refusal.InternalError(error: "Cannot process request").encode(to: &writer, .three)
        let line = writer.bytes + [0x0A]
        _ = send(socket, line, line.count, Int32(MSG_NOSIGNAL))
        close(socket)
    }

    func sessionEnded(_ session: Session) {
        sessionsByID[ObjectIdentifier(session)] = nil
        acceptance?.change(.read)
    }
}
