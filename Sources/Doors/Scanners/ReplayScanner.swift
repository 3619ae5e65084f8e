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

    private struct Capture {
        var file: [UInt8] = []
        var events: [(time: Int64, adapter: Int, event: Range<Int>)] = []
    }

    private var capture = Capture()
    private var position = 0
    private var fragments = FragmentAssembly()
    private var alarm: Loop.Alarm?

    package init(path: String) { self.path = path }

    package func scan(_ demand: ScanDemand) {
        guard alarm == nil else { return }
        do throws(ScannerFault) {
            capture = try Self.read(path)
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
        capture = Capture()
        status = ScannerStatus()
    }

    package func restorePower() async {}

    package func inspect() async -> ScannerStatus {
        // The content is checked when a scan starts, because the file may be large.
        guard access(path, R_OK) != 0 else { return ScannerStatus() }
        return ScannerStatus(fault: Self.unreadable(path))
    }

    private nonisolated static func configured(_ text: Phrase, advice: Phrase) -> ScannerFault {
        var fault = ScannerFault(.service, text, advice: advice)
        fault.isConfigured = true
        return fault
    }

    private nonisolated static func unreadable(_ path: String) -> ScannerFault {
        configured("cannot read \(path)", advice: "correct [ble] replay in badged.conf")
    }

    package func recover(_ step: RecoveryStep, adapter: Int?) -> Bool { false }

    /// How much of a file shows that it can be replayed.
    private nonisolated static let beginning = 1 << 20

    /// Refuses a file that cannot be replayed, by its beginning.
    package nonisolated static func check(_ path: String) throws(ScannerFault) {
        guard case .file(let descriptor) = PlainFile.open(path) else { throw unreadable(path) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_size <= longestFile else { throw unreadable(path) }
        guard status.st_size > beginning, case .bytes(let bytes) = PlainFile.beginning(descriptor, count: beginning),
            (try? records(in: bytes, path)) != nil
        else { return _ = try read(path) }
    }

    private nonisolated static func read(_ path: String) throws(ScannerFault) -> Capture {
        guard case .bytes(let bytes) = PlainFile.read(path, limit: longestFile) else { throw unreadable(path) }
        return try records(in: bytes, path)
    }

    private nonisolated static func records(in bytes: [UInt8], _ path: String) throws(ScannerFault) -> Capture {
        var capture = Capture(file: bytes)
        do throws(Malformed) {
            // The complete records of a truncated capture are replayed.
            _ = try BTSnoop.forEachEvent(in: bytes.span) { capture.events.append(($0, $1, $2)) }
        } catch {
            throw configured(
                "\(path) is not a capture file: \(error.text)",
                advice: "badgectl capture creates one"
            )
        }
        guard !capture.events.isEmpty else {
            throw configured("\(path) has no records", advice: "badgectl capture creates a file with records")
        }
        return capture
    }

    /// Passes on the records that are due, then sets the alarm. After 1000 records other work of the loop has its turn.
    private func play() {
        for _ in 0..<1000 {
            guard alarm != nil, position < capture.events.count else { break }
            let entry = capture.events[position]
            position += 1
            let event = Array(capture.file[entry.event])
            let span = event.span
            HCIEvent.forEachReport(in: span) { report, data in
                fragments.add(report, span.extracting(data), adapter: entry.adapter) { report, data in
                    observer?.received(report, data, adapter: entry.adapter)
                }
            }
            guard position < capture.events.count else { break }
            let next = capture.events[position].time
            let (difference, hasOverflow) = next.subtractingReportingOverflow(entry.time)
            // Only a later time is that far away.
            let pause = hasOverflow ? (next > entry.time ? Self.longestPause : 0) : difference
            if pause >= 1000 {
                alarm?.set(after: min(pause, Self.longestPause) / 1000)
                return
            }
        }
        if position >= capture.events.count {
            position = 0
            alarm?.set(after: 1000)
        } else {
            alarm?.set(after: 0)
        }
    }
}
