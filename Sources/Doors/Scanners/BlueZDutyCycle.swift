// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// The duty cycle of power saving: the adapters discover for a time, then pause for a time.
@Loop final class BlueZDutyCycle {
    private(set) var isPausing = false
    private let (on, off): (Int64, Int64)
    private let onChange: @Loop () -> Void
    private var alarm: Loop.Alarm?

    /// Creates a duty cycle of `on` milliseconds of discovery and `off` milliseconds of pause. `onChange` is called
    /// when a pause begins or ends.
    init(on: Int64, off: Int64, onChange: @escaping @Loop () -> Void) {
        self.on = on
        self.off = off
        self.onChange = onChange
    }

    /// Begins with discovery; without effect when the duty cycle runs.
    func begin() {
        guard alarm == nil else { return }
        alarm = Loop.Alarm { [weak self] in self?.change() }
        alarm?.set(after: on)
    }

    /// Ends the duty cycle with discovery.
    func end() {
        alarm = nil
        if isPausing { change() }
    }

    /// Ends a pause, or starts the time of the discovery again.
    func extend() { if isPausing { change() } else { alarm?.set(after: on) } }

    /// Must be called when the scan has ended.
    func reset() { (alarm, isPausing) = (nil, false) }

    private func change() {
        isPausing.toggle()
        onChange()
        alarm?.set(after: isPausing ? off : on)
    }
}
