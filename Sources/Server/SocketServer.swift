// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
package import Loop
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
    let info: ServerInfo
    let log: Log
    /// What workflows take for the time.
    package var now: Now = { ContinuousClock.now }
    private let maximumClients: Int
    private let permissions: @Loop (Peer) -> Permissions
    private var listener: Int32 = -1
    private var acceptance: Loop.Registration?
    private var sessions: [ObjectIdentifier: Session] = [:]
    private var sessionCount = 0

    package init(
        registry: ReaderRegistry,
        info: ServerInfo,
        maximumClients: Int,
        permissions: @escaping @Loop (Peer) -> Permissions,
        log: @escaping Log
    ) {
        (self.registry, self.info, self.maximumClients) = (registry, info, maximumClients)
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
                serve(socket)
            } else {
                log(.warning, "a client was refused: no descriptors are left for it")
                refuse(socket)
            }
        }
    }

    /// Serves one connected, non-blocking Unix stream socket and owns it from now on.
    package func serve(_ socket: Int32) {
        guard sessions.count < maximumClients, let peer = try? Peer(socket: socket) else {
            log(.warning, "a client was refused: \(sessions.count) are connected")
            return refuse(socket)
        }
        sessionCount += 1
        do throws(SystemError) {
            let session = try Session(socket, peer, permissions(peer), number: sessionCount, server: self)
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

    func sessionEnded(_ session: Session) {
        sessions[ObjectIdentifier(session)] = nil
        acceptance?.change(.read)
    }

    private func readerChanged(_ name: String) {
        for session in sessions.values { session.readerChanged(name) }
    }
}
