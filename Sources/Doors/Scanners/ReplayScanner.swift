// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import DoorReaders
import Glibc

/// Plays a capture file as if it were heard now, over and over, at the pace at which it was recorded: for
/// demonstrations, and for clients that are tested without a radio.
@Loop package final class ReplayScanner: Scanner {
    package nonisolated let name = "replay"
    package weak var observer: (any ScannerObserver)?
    package private(set) var status = ScannerStatus()

    private let path: String
    /// What is not waited for in a pause of the recording.
    private static let longestPause: Int64 = 5_000_000
    /// Longest file that is read, in bytes.
    package nonisolated static let longestFile = 256 << 20

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
            (position, fragments) = (0, FragmentAssembly())
            alarm?.set(after: 0)
        } catch {
            stop()
            status.fault = error
        }
        observer?.scannerChanged(self)
    }

    package func stop() {
        (alarm, file, events) = (nil, [], [])
        status = ScannerStatus()
    }

    package func settle() async {}

    package func examine() async -> ScannerStatus {
        // It is read when it is wanted, as it may be large.
        guard access(path, R_OK) != 0 else { return ScannerStatus() }
        return ScannerStatus(fault: Self.unreadable(path))
    }

    private static func unreadable(_ path: String) -> ScannerFault {
        ScannerFault(.service, "cannot read \(path)", advice: "correct [ble] replay in badged.conf")
    }

    package func recover(_ step: RecoveryStep, adapter: Int?) -> Bool { false }

    private func load() throws(ScannerFault) {
        guard let bytes = Self.contents(of: path) else {
            throw Self.unreadable(path)
        }
        file = bytes
        events = []
        do throws(BTSnoop.Fault) {
            try BTSnoop.forEachEvent(in: file.span) { events.append(($0, $1, $2)) }
        } catch {
            // A capture that was cut off is played as far as it goes.
            guard error == .truncated else {
                throw ScannerFault(.service, "\(path) is no capture file", advice: "badgectl capture makes one")
            }
        }
        guard !events.isEmpty else {
            throw ScannerFault(.service, "\(path) is empty", advice: "badgectl capture makes one with something in it")
        }
    }

    /// A whole file; nil when it cannot be read or is too long.
    package nonisolated static func contents(of path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_size <= longestFile else { return nil }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= longestFile {
            let count = read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            if count < 0, errno != EINTR { return nil }
            bytes += chunk[..<max(count, 0)]
        }
        return nil
    }

    /// Everything that is due, then a pause; not more than some at once, for others wait, too.
    private func play() {
        for _ in 0..<1000 {
            guard alarm != nil, position < events.count else { break }
            let entry = events[position]
            position += 1
            let event = Array(file[entry.event])
            let span = event.span
            HCIEvent.forEachReport(in: span) { report, data in
                fragments.take(report, span.extracting(data), adapter: entry.adapter) { report, data in
                    observer?.heard(report, data, adapter: entry.adapter)
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
