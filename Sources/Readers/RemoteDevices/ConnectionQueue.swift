// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc

/// The accepted connections that wait for a handshake.
///
/// A client of TLS speaks first. So a silent connection costs one descriptor, and is the first to be closed. One that
/// has sent something is never closed for load: AusweisApp deletes a pairing after seven refusals in a row.
@Loop final class ConnectionQueue {
    struct Waiting {
        let socket: Int32
        let source: RemoteAddress.Host
        fileprivate let time: Int64
        fileprivate var registration: Loop.Registration?
        fileprivate var hasSpoken = false
    }

    private static let maximum = 64
    private static let maximumOfSource = 16

    /// By arrival, the oldest first.
    private var all: [Waiting] = []
    private let timeout: Int64
    private lazy var limit = Loop.Alarm { [weak self] in self?.closeOld() }
    /// Called when a connection has sent something or was closed.
    private let observer: @Loop () -> Void
    /// Called with the source of a connection that was closed, and whether that was to make room.
    private let refused: @Loop (RemoteAddress.Host, Bool) -> Void

    /// `timeout` is in milliseconds.
    init(
        timeout: Int64,
        observer: @escaping @Loop () -> Void,
        refused: @escaping @Loop (RemoteAddress.Host, Bool) -> Void
    ) {
        self.timeout = timeout
        self.observer = observer
        self.refused = refused
    }

    /// Whether a further connection would find no room, because all have sent something.
    var isFull: Bool { all.count >= Self.maximum && all.allSatisfy(\.hasSpoken) }

    /// Takes an accepted connection.
    func add(_ socket: Int32, _ source: RemoteAddress.Host) {
        let silent = all.filter { !$0.hasSpoken }
        if silent.count(where: { $0.source == source }) >= Self.maximumOfSource {
            drop { !$0.hasSpoken && $0.source == source }
        } else if all.count >= Self.maximum {
            let counts = Dictionary(silent.map { ($0.source, 1) }, uniquingKeysWith: +)
            let greediest = counts.max { $0.value < $1.value }?.key
            drop { !$0.hasSpoken && $0.source == greediest }
        }
        let registration = try? Loop.watch(socket, .read) { [weak self] _ in self?.changed(socket) }
        all.append(Waiting(socket: socket, source: source, time: Loop.now, registration: registration))
        limit.set(after: all[0].time + timeout - Loop.now)
        // A handshake that is here already begins now.
        changed(socket)
    }

    private func drop(_ isMeant: (Waiting) -> Bool) {
        guard let oldest = all.firstIndex(where: isMeant) else { return }
        end(all.remove(at: oldest), makesRoom: true)
    }

    private func end(_ waiting: Waiting, makesRoom: Bool = false) {
        waiting.registration?.cancel()
        close(waiting.socket)
        refused(waiting.source, makesRoom)
    }

    private func changed(_ socket: Int32) {
        guard let index = all.firstIndex(where: { $0.socket == socket }), !all[index].hasSpoken else { return }
        var byte: UInt8 = 0
        let count = recv(socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        if count > 0 {
            all[index].registration?.cancel()
            all[index].hasSpoken = true
        } else {
            end(all.remove(at: index))
        }
        observer()
    }

    private func closeOld() {
        while let oldest = all.first, Loop.now - oldest.time >= timeout { end(all.removeFirst()) }
        if let oldest = all.first { limit.set(after: oldest.time + timeout - Loop.now) }
        observer()
    }

    /// Takes the oldest connection that has sent something from the source with the fewest handshakes under way; nil:
    /// there is none. `running` returns the number for a source; nil for one that has to wait.
    func next(_ running: (RemoteAddress.Host) -> Int?) -> Waiting? {
        var best: (index: Int, running: Int)?
        for (index, waiting) in all.enumerated() where waiting.hasSpoken {
            guard let count = running(waiting.source), count < best?.running ?? .max else { continue }
            best = (index, count)
        }
        return best.map { all.remove(at: $0.index) }
    }

    /// Whether a connection waits for its handshake.
    var hasNext: Bool { all.contains(where: \.hasSpoken) }

    func closeAll() {
        limit.cancel()
        for waiting in all { end(waiting) }
        all = []
    }
}
