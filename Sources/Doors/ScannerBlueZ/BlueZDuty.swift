// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// The rhythm of power saving: for a time the adapters discover, then they leave the radio to others for a time.
@Loop final class BlueZDuty {
    /// Now is the pause.
    private(set) var isPausing = false
    private let (on, off): (Int64, Int64)
    private let onTurn: @Loop () -> Void
    private var alarm: Loop.Alarm?

    /// - Parameters:
    ///   - on: milliseconds of discovery.
    ///   - off: milliseconds of the pause.
    ///   - onTurn: a pause has begun or ended.
    init(on: Int64, off: Int64, onTurn: @escaping @Loop () -> Void) {
        (self.on, self.off, self.onTurn) = (on, off, onTurn)
    }

    /// Begins with discovery, unless it goes on already.
    func begin() {
        guard alarm == nil else { return }
        alarm = Loop.Alarm { [weak self] in self?.turn() }
        alarm?.set(after: on)
    }

    /// No pauses any more; one that is now ends.
    func end() {
        alarm = nil
        if isPausing { turn() }
    }

    /// Discovery begins now, or goes on for its whole time.
    func holdOn() { if isPausing { turn() } else if alarm != nil { alarm?.set(after: on) } }

    /// For the end of the scan; the next one begins with discovery.
    func reset() { (alarm, isPausing) = (nil, false) }

    private func turn() {
        isPausing.toggle()
        onTurn()
        alarm?.set(after: isPausing ? off : on)
    }
}
