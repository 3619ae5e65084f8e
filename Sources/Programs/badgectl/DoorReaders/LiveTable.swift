// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Synchronization

/// The table of `badgectl scan --watch` on a terminal. It is drawn again each second, because its lines move.
final class LiveTable: Sendable {
    private struct State {
        var readers: [String: DoorReader] = [:]
        var history = SignalHistory()
    }

    private let state = Mutex(State())
    private let ticks = Mutex<Task<Void, Never>?>(nil)

    init() {
        let task = Task.detached { [weak self] in
            while !Task.isCancelled, let self {
                draw()
                try? await Task.sleep(for: .seconds(1))
            }
        }
        ticks.withLock { $0 = task }
    }

    /// Milliseconds since the start of this computer.
    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    func update(_ reader: DoorReader) {
        state.withLock { state in
            state.readers[reader.id] = reader
            state.history.add(reader, at: Self.now)
        }
        draw()
    }

    func remove(_ id: String) {
        state.withLock { _ = $0.readers.removeValue(forKey: id) }
        draw()
    }

    /// Draws no more.
    func end() { ticks.withLock { $0?.cancel() } }

    /// Clears the screen and draws the table. Two drawings do not mix, because the lock is held.
    private func draw() {
        state.withLock { state in
            let now = Self.now
            state.history.dropOld(at: now)
            let lines = DoorReaderTable.lines(state.readers.values, history: (state.history, now: now))
            Output.write("\u{1B}[H\u{1B}[2J" + lines.joined(separator: "\n") + "\n", to: STDOUT_FILENO)
        }
    }
}
