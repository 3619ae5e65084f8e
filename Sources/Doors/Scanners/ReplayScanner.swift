// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import DoorReaders
import Glibc
import Host
import Text

/// Replays a capture file in a loop, at the speed of the recording: for demonstrations, and for tests of clients
/// without a radio.
@Loop package final class ReplayScanner: Scanner {
    package nonisolated let name = "replay"
    package weak var observer: (any ScannerObserver)?
    package private(set) var status = ScannerStatus()

    private let path: String
    /// Longer pauses of the recording are shortened to this time, in microseconds.
    private static let longestPause: Int64 = 5_000_000
    /// Largest file that is read, in bytes.
    private nonisolated static let longestFile = 256 << 20

    private var file: [UInt8] = []
    private var events: [(time: Int64, adapter: Int, event: Range<Int>)] = []
    private var position = 0
    private var fragments = FragmentAssembly()
    private var alarm: Loop.Alarm?

    package init(path: String) { self.path = path }

    package func scan(_ demand: ScanDemand) {
        guard alarm == nil else { return }
        do throws(ScannerFault) {
            try load()
            alarm = Loop.Alarm { [weak self] in self?.play() }
            status = ScannerStatus(isListening: true)
            position = 0
            fragments = FragmentAssembly()
            alarm?.set(after: 0)
        } catch {
            stop()
            status.fault = error
        }
        observer?.scannerChanged(self)
    }

    package func stop() {
        alarm = nil
        file = []
        events = []
        status = ScannerStatus()
    }

    package func restorePower() async {}

    package func inspect() async -> ScannerStatus {
        // The content is checked when a scan starts, because the file may be large.
        guard access(path, R_OK) != 0 else { return ScannerStatus() }
        return ScannerStatus(fault: Self.unreadable(path))
    }

    private static func configured(_ text: String, advice: String) -> ScannerFault {
        var fault = ScannerFault(.service, text, advice: advice)
        fault.isConfigured = true
        return fault
    }

    private static func unreadable(_ path: String) -> ScannerFault {
        configured("cannot read \(path)", advice: "correct [ble] replay in badged.conf")
    }

    package func recover(_ step: RecoveryStep, adapter: Int?) -> Bool { false }

    private func load() throws(ScannerFault) {
        guard case .bytes(let bytes) = PlainFile.read(path, limit: Self.longestFile) else {
            throw Self.unreadable(path)
        }
        file = bytes
        events = []
        do throws(Malformed) {
            // The complete records of a truncated capture are replayed.
            _ = try BTSnoop.forEachEvent(in: file.span) { events.append(($0, $1, $2)) }
        } catch {
            throw Self.configured(
                "\(path) is not a capture file: \(error.text)",
                advice: "badgectl capture creates one"
            )
        }
        guard !events.isEmpty else {
            throw Self.configured(
                "\(path) has no records",
                advice: "badgectl capture creates a file with records"
            )
        }
    }

    /// Passes on the records that are due, then sets the alarm. After 1000 records other work of the loop has its turn.
    private func play() {
        for _ in 0..<1000 {
            guard alarm != nil, position < events.count else { break }
            let entry = events[position]
            position += 1
            let event = Array(file[entry.event])
            let span = event.span
            HCIEvent.forEachReport(in: span) { report, data in
                fragments.add(report, span.extracting(data), adapter: entry.adapter) { report, data in
                    observer?.received(report, data, adapter: entry.adapter)
                }
            }
            guard position < events.count else { break }
            let pause = events[position].time - entry.time
            if pause >= 1000 {
                alarm?.set(after: min(pause, Self.longestPause) / 1000)
                return
            }
        }
        if position >= events.count {
            position = 0
            alarm?.set(after: 1000)
        } else {
            alarm?.set(after: 0)
        }
    }
}
