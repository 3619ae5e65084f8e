// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
package import Scanners

/// A scanner that a test controls.
@Loop package final class ScriptedScanner: Scanner {
    package nonisolated let name: String
    package weak var observer: (any ScannerObserver)?
    package private(set) var status = ScannerStatus()
    /// The calls in order: demands, `stop`, recovery steps.
    package private(set) var calls: [String] = []
    package private(set) var demand: ScanDemand?
    package var readsDevices = false
    /// The recovery steps that the scanner supports.
    package var steps: Set<RecoveryStep> = []
    /// Called when a scan begins.
    package var onScan: (@Loop () -> Void)?

    package nonisolated init(_ name: String = "scripted") { self.name = name }

    package func scan(_ demand: ScanDemand) {
        self.demand = demand
        let codes = demand.lockServiceCodes.sorted().map(String.init).joined(separator: "+")
        calls.append("scan \(demand.mode.rawValue) \(codes.isEmpty ? "any" : codes)")
        onScan?()
    }

    package func stop() {
        demand = nil
        status = ScannerStatus()
        calls.append("stop")
    }

    package func restorePower() async { calls.append("settle") }

    /// The result of `inspect`.
    package var idle = ScannerStatus()

    package func inspect() async -> ScannerStatus {
        calls.append("inspect")
        return idle
    }

    package func recover(_ step: RecoveryStep, adapter: Int?) -> Bool {
        calls.append("\(step)\(adapter.map { " hci\($0)" } ?? "")")
        return steps.contains(step)
    }

    // MARK: Events

    package func change(_ status: ScannerStatus) {
        self.status = status
        observer?.scannerChanged(self)
    }

    package func receive(_ data: [UInt8], from address: DeviceAddress, _ rssi: Int8, adapter: Int = 0) {
        observer?.received(AdvertisingReport(address: address, rssi: rssi), data.span, adapter: adapter)
    }
}

/// A clock that only the test advances.
@Loop package final class ManualClock: RadioClock {
    package private(set) var now: Milliseconds = 1_000_000
    package var onAlarm: (@Loop () -> Void)?
    package private(set) var alarm: Milliseconds?

    package nonisolated init() {}

    package func setAlarm(_ time: Milliseconds?) { alarm = time }

    /// Advances the time and calls `onAlarm` for each alarm on the way, also for new ones.
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
