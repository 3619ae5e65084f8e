// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency

/// The accepted connections that wait for a handshake.
///
/// A client of TLS speaks first. So a silent connection costs one descriptor, and is the first to be closed. One that
/// has sent something is never closed for load: AusweisApp deletes a pairing after seven refusals in a row.
@Loop package final class ConnectionQueue {
    package struct Waiting {
        package let connection: UInt32
        package let source: RemoteAddress.Host
        let time: Int64
        var hasSpoken = false
    }

    private static let maximum = 64
    private static let maximumOfSource = 16

    /// By arrival, the oldest first.
    private var all: [Waiting] = []
    private let timeout: Int64
    private let network: RemoteNetwork
    private lazy var limit = Loop.Alarm { [weak self] in self?.closeOld() }
    /// The silent connections that were closed to make room.
    package private(set) var dropped = 0
    package private(set) var dropTime = Int64.min
    /// Called when a connection has sent something or was closed.
    package var observer: @Loop () -> Void = {}

    /// `timeout` is in milliseconds.
    package nonisolated init(timeout: Int64, _ network: RemoteNetwork) {
        self.timeout = timeout
        self.network = network
    }

    /// Whether a further connection would find no room, because all have sent something.
    package var isFull: Bool { all.count >= Self.maximum && all.allSatisfy(\.hasSpoken) }

    package func add(_ connection: UInt32, _ source: RemoteAddress.Host) {
        let silent = all.filter { !$0.hasSpoken }
        if silent.count(where: { $0.source == source }) >= Self.maximumOfSource {
            drop { !$0.hasSpoken && $0.source == source }
        } else if all.count >= Self.maximum {
            let counts = Dictionary(silent.map { ($0.source, 1) }, uniquingKeysWith: +)
            let greediest = counts.max { $0.value < $1.value }?.key
            drop { !$0.hasSpoken && $0.source == greediest }
        }
        all.append(Waiting(connection: connection, source: source, time: Loop.now))
        network.watch(connection) { [weak self] in self?.changed(connection, isGone: $0) }
        limit.set(after: all[0].time + timeout - Loop.now)
    }

    private func drop(_ isMeant: (Waiting) -> Bool) {
        guard let oldest = all.firstIndex(where: isMeant) else { return }
        dropped = dropped + 1
        dropTime = Loop.now
        end(all.remove(at: oldest))
    }

    private func end(_ waiting: Waiting) { network.drop(waiting.connection) }

    private func changed(_ connection: UInt32, isGone: Bool) {
        guard let index = all.firstIndex(where: { $0.connection == connection }) else { return }
        if isGone { all.remove(at: index) } else { all[index].hasSpoken = true }
        observer()
    }

    private func closeOld() {
        while let oldest = all.first, Loop.now - oldest.time >= timeout { end(all.removeFirst()) }
        if let oldest = all.first { limit.set(after: oldest.time + timeout - Loop.now) }
        observer()
    }

    /// Takes the oldest connection that has sent something from the source with the fewest handshakes under way; nil:
    /// there is none. `running` returns the number for a source; nil for one that has to wait.
    package func next(_ running: (RemoteAddress.Host) -> Int?) -> Waiting? {
        var best: (index: Int, running: Int)?
        for (index, waiting) in all.enumerated() where waiting.hasSpoken {
            guard let count = running(waiting.source), count < best?.running ?? .max else { continue }
            best = (index, count)
        }
        return best.map { all.remove(at: $0.index) }
    }

    /// Whether a connection waits for its handshake.
    package var hasNext: Bool { all.contains(where: \.hasSpoken) }

    package func closeAll() {
        limit.cancel()
        for waiting in all { end(waiting) }
        all = []
    }
}
