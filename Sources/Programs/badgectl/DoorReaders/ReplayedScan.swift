// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Host
import Text

/// `badgectl scan --replay`: decodes a capture and tracks its readers, without badged.
enum ReplayedScan {
    /// In bytes.
    private static let longestFile = 256 << 20

    /// `plot` is the file for an image of the signals; nil: none.
    static func run(_ path: String, _ filter: ScanFilter, asJSON: Bool, plot: String? = nil) throws {
        let file = try FileContent.read(path, limit: longestFile)
        let tracker = ReaderTracker()
        var fragments = FragmentAssembly()
        var (first, last): (Int64?, Milliseconds) = (nil, 0)
        var history = SignalHistory()
        if plot != nil {
            tracker.observer = { change, reader in
                guard change != .lost, filter.matches(reader) else { return }
                history.add(row(reader, at: reader.lastSeen), at: reader.lastSeen)
            }
        }
        let isComplete: Bool
        do throws(Malformed) {
            isComplete = try BTSnoop.forEachEvent(in: file.span) { time, adapter, place in
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
            throw CommandFailure("\(path): \(tr(error.words))", hint: tr("badgectl capture writes a btsnoop file"))
        }
        if !isComplete { Output.note(tr("badgectl: \(path) is cut off; the table shows the part before")) }
        let found = tracker.readers(filter, activeOnly: false, at: last)
        let counters = tracker.counters
        defer {
            Output.note(
                tr("\(counters.received) advertisements in \(last / 1000) s, \(counters.unmatched) of other devices")
            )
        }
        if let plot { try ScanCommand.write(history, to: plot) }
        if asJSON {
            return write(found, at: last, clock: (first ?? 0) / 1000 + last)
        }
        let readers = found.map { row($0, at: last) }
        for line in DoorReaderTable.lines(readers) { Output.line(line) }
    }

    /// A reader as badged would report it.
    private static func row(_ reader: DoorReaders.DoorReader, at now: Milliseconds) -> BadgedClient.DoorReader {
        let types = reader.openingTypes.types
        return BadgedClient.DoorReader(
            id: reader.id,
            profile: reader.profile.rawValue,
            name: reader.name,
            lockServiceCode: reader.lockServiceCode,
            lockServiceCodes: reader.lockServiceCodes,
            beacon: reader.beacon.map { .init(uuid: $0.uuid, major: Int($0.major), minor: Int($0.minor)) },
            openingTypes: types.map(\.name),
            inRange: reader.inRange.types.map(\.name),
            limits: Dictionary(types.map { ($0.name, reader.limit($0).value) }) { $1 },
            level: reader.signal.level,
            lastRSSI: Int(reader.signal.last),
            isActive: reader.isActive(at: now)
        )
    }

    /// Writes DOOR_READER_LIST, as badged would answer at the end of the capture.
    private static func write(_ readers: [DoorReaders.DoorReader], at now: Milliseconds, clock: Milliseconds) {
        Output.object {
            $0.member("msg", "DOOR_READER_LIST")
            $0.array("readers", readers) { array, reader in
                let state = DoorReaderState(reader, at: now, withHistory: true, clock: clock)
                array.object { state.write(to: &$0) }
            }
        }
    }
}
