// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Concurrency
import Glibc
package import Scanners
import Text
package import Wire
package import Workflows

/// How loud a log line is; the numbers are those of syslog.
package enum Severity: Int, Sendable {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
    case debug = 7
}

/// Accepts clients and keeps one session for each; tells all of them what happens to readers.
@Loop package final class SocketServer {
    package typealias Log = @Loop (Severity, String) -> Void

    let registry: ReaderRegistry
    let services: OnlineServices
    let info: ServerInfo
    let log: Log
    /// What workflows take for the time.
    package var now: Now = { ContinuousClock.now }
    /// The scan for door readers; nil: not in this daemon.
    package var radio: Radio?
    private let maximumClients: Int
    private let permissions: @Loop (Peer) -> Permissions
    private var listener: Int32 = -1
    private var acceptance: Loop.Registration?
    private var sessions: [ObjectIdentifier: Session] = [:]
    private var sessionCount = 0

    package init(
        registry: ReaderRegistry,
        services: OnlineServices,
        info: ServerInfo,
        maximumClients: Int,
        permissions: @escaping @Loop (Peer) -> Permissions,
        log: @escaping Log
    ) {
        (self.registry, self.services) = (registry, services)
        (self.info, self.maximumClients) = (info, maximumClients)
        (self.permissions, self.log) = (permissions, log)
        registry.observer = { [weak self] name in self?.readerChanged(name) }
        registry.log = { log(.info, $0) }
    }

    /// Serves a listening, non-blocking Unix stream socket; the caller keeps owning it.
    /// - Throws: `SystemError` when it cannot be watched.
    package func listen(on socket: Int32) throws(SystemError) {
        listener = socket
        var files = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files) == 0, files.rlim_cur < rlim_t(Int32.max) {
            firstReserved = Int32(files.rlim_cur) - Self.reservedDescriptors
        }
        acceptance = try Loop.watch(socket, .read) { [weak self] _ in self?.acceptClients() }
    }

    /// Ends all sessions; workflows give their cards back first. Returns when that is done.
    package func stop() async {
        acceptance?.cancel()
        acceptance = nil
        for session in sessions.values { session.end(becauseOf: "the daemon ends") }
        while let session = sessions.values.first { await session.waitForEnd() }
    }

    package var clientCount: Int { sessions.count }

    /// Descriptors that clients do not get: readers and cards need them, and the runtime does not survive without.
    private static let reservedDescriptors: Int32 = 16
    private var firstReserved = Int32.max

    /// Clients live from here on. Libraries that wait in select(2), such as libnfc, can use no number above, and the C
    /// library ends a process that tries.
    private static let firstForClients: Int32 = 1024

    private func acceptClients() {
        // Bounded, so that a storm of connections cannot starve the clients that are there.
        for _ in 0..<64 {
            let socket = clinux_accept(listener)
            if socket < 0 {
                switch errno {
                case EINTR, ECONNABORTED: continue
                case EMFILE, ENFILE, ENOBUFS, ENOMEM:
                    log(.warning, "cannot accept a client: \(String(cString: strerror(errno)))")
                    // Level-triggered readiness would spin; the end of a session brings it back.
                    if !sessions.isEmpty { acceptance?.change([]) }
                default: break
                }
                return
            }
            if socket < firstReserved {
                let isRoomAbove = sessions.count < Int(firstReserved) - Int(Self.firstForClients)
                serve(isRoomAbove ? clinux_move_descriptor(socket, Self.firstForClients) : socket)
            } else {
                log(.warning, "a client was refused: no descriptors are left for it")
                refuse(socket)
            }
        }
    }

    /// Serves one connected, non-blocking Unix stream socket and owns it from now on.
    package func serve(_ socket: Int32) {
        guard let peer = try? Peer(socket: socket) else {
            log(.warning, "a client was refused: nobody is there")
            return refuse(socket)
        }
        serve(socket, permissions(peer), from: "pid \(peer.pid), uid \(peer.uid)")
    }

    /// The same for a client that comes through a door of badged's own, of which the kernel says nothing. `origin` names
    /// it in the log.
    package func serve(_ socket: Int32, _ permissions: Permissions, from origin: String) {
        guard sessions.count < maximumClients else {
            log(.warning, "a client was refused: \(sessions.count) are connected")
            return refuse(socket)
        }
        sessionCount += 1
        do throws(SystemError) {
            let session = try Session(socket, permissions, name: "client \(sessionCount) (\(origin))", server: self)
            sessions[ObjectIdentifier(session)] = session
            session.start()
        } catch {
            log(.error, "cannot serve a client: \(error)")
            close(socket)
        }
    }

    private func refuse(_ socket: Int32) {
        var writer = JSONWriter()
        Message.internalError("Cannot process request").write(to: &writer, level: .three)
        let line = writer.bytes + [0x0A]
        _ = send(socket, line, line.count, Int32(MSG_NOSIGNAL))
        close(socket)
    }

    // MARK: User interface

    /// The clients that speak with the user for browsers, the newest last; it has the word.
    private var userInterfaces: [Session] = []

    var userInterface: Session? { userInterfaces.last }

    func setUserInterface(_ session: Session, _ isActive: Bool) {
        userInterfaces.removeAll { $0 === session }
        if isActive { userInterfaces.append(session) }
    }

    func sessionEnded(_ session: Session) {
        setUserInterface(session, false)
        sessions[ObjectIdentifier(session)] = nil
        acceptance?.change(.read)
    }

    private func readerChanged(_ name: String) {
        for session in sessions.values { session.readerChanged(name) }
    }
}
