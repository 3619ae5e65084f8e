// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Glibc

/// `badgectl scan --replay`: decodes a capture and tracks its readers, without badged.
enum ReplayedScan {
    /// In bytes.
    private static let longestFile = 256 << 20

    static func run(_ path: String, _ filter: ScanFilter) throws(Failure) -> ExitStatus {
        let file = try contents(of: path)
        let tracker = ReaderTracker()
        var fragments = FragmentAssembly()
        var (first, last): (Int64?, Milliseconds) = (nil, 0)
        do throws(BTSnoop.Fault) {
            try BTSnoop.forEachEvent(in: file.span) { time, adapter, place in
                let start = first ?? time
                first = start
                // If the clock was set back during the capture, the time stands still here.
                last = max(last, time / 1000 - start / 1000)
                let event = Array(file[place])
                let span = event.span
                HCIEvent.forEachReport(in: span) { report, data in
                    fragments.add(report, span.extracting(data), adapter: adapter) { report, data in
                        tracker.receive(report, data, adapter: adapter, at: last)
                    }
                }
                if let due = tracker.nextSweep, due <= last { tracker.sweep(at: last) }
            }
        } catch {
            switch error {
            case .notBTSnoop: throw Failure(.failed, "\(path) is no btsnoop file", hint: "badgectl capture writes one")
            case .unknownDataLink(let number):
                throw Failure(
                    .failed,
                    "\(path) has the unknown data link \(number)",
                    hint: "badgectl reads 1001, 1002 and 2001"
                )
            case .truncated: Output.note("badgectl: \(path) is cut off; the table shows the part before")
            }
        }
        let readers = tracker.readers(filter, activeOnly: false, at: last).map { reader in
            BadgedClient.DoorReader(
                id: reader.id,
                profile: reader.profile.rawValue,
                name: reader.name,
                lockServiceCode: reader.lockServiceCode,
                lockServiceCodes: reader.lockServiceCodes,
                openingTypes: reader.openingTypes.types.map(\.name),
                inRange: reader.inRange.types.map(\.name),
                level: reader.signal.level,
                lastRSSI: Int(reader.signal.last),
                isActive: reader.isActive(at: last)
            )
        }
        for line in DoorReaderTable.lines(readers) { Output.line(line) }
        let counters = tracker.counters
        Output.note("\(counters.received) advertisements in \(last / 1000) s, \(counters.unmatched) of other devices")
        return .done
    }

    private static func contents(of path: String) throws(Failure) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(.failed, "cannot read \(path): \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            if count < 0, errno == EINTR { continue }
            guard count > 0, bytes.count < longestFile else { throw Failure(.failed, "cannot read all of \(path)") }
            bytes += chunk[..<count]
        }
    }
}
