// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
package import Scanners

/// A way to the radio that a test plays by hand.
@Loop package final class ScriptedScanner: Scanner {
    package nonisolated let name: String
    package weak var observer: (any ScannerObserver)?
    package private(set) var status = ScannerStatus()
    /// What was asked of it, in order: demands, `stop`, steps.
    package private(set) var calls: [String] = []
    package private(set) var demand: ScanDemand?
    /// Steps that it takes; others it has not.
    package var steps: Set<RecoveryStep> = []

    package nonisolated init(_ name: String = "scripted") { self.name = name }

    package func scan(_ demand: ScanDemand) {
        self.demand = demand
        let codes = demand.lockServiceCodes.sorted().map(String.init).joined(separator: "+")
        calls.append("scan \(demand.mode.rawValue) \(codes.isEmpty ? "any" : codes)")
    }

    package func stop() {
        demand = nil
        status = ScannerStatus()
        calls.append("stop")
    }

    package func restorePower() async { calls.append("settle") }

    /// What a look at it shows while it does not scan.
    package var idle = ScannerStatus()

    package func inspect() async -> ScannerStatus {
        calls.append("inspect")
        return idle
    }

    package func recover(_ step: RecoveryStep, adapter: Int?) -> Bool {
        calls.append("\(step)\(adapter.map { " hci\($0)" } ?? "")")
        return steps.contains(step)
    }

    // MARK: Playing

    package func change(_ status: ScannerStatus) {
        self.status = status
        observer?.scannerChanged(self)
    }

    package func receive(_ data: [UInt8], from address: DeviceAddress, _ rssi: Int8, adapter: Int = 0) {
        observer?.received(AdvertisingReport(address: address, rssi: rssi), data.span, adapter: adapter)
    }
}

/// A clock that only a test moves.
@Loop package final class ManualClock: RadioClock {
    package private(set) var now: Milliseconds = 1_000_000
    package var onAlarm: (@Loop () -> Void)?
    package private(set) var alarm: Milliseconds?

    package nonisolated init() {}

    package func setAlarm(_ time: Milliseconds?) { alarm = time }

    /// Moves the time on; the alarm goes off on the way, as often as it is set again.
    package func advance(_ milliseconds: Milliseconds) {
        let end = now + milliseconds
        while let next = alarm, next <= end {
            now = max(now, next)
            alarm = nil
            onAlarm?()
        }
        now = end
    }
}
