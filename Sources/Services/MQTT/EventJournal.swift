// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
package import Host
import Text

/// Events that the broker has acknowledged, for consumers whose broker has lost them: `[queue] keep`. Each day has a file
/// of lines `TOPIC EVENT`. A file that cannot be written is no reason to stop.
package struct EventJournal {
    /// The folder of the queue, and the one of the journal in it.
    private let parent: String
    private let folder: String
    private let days: Int
    private let isClockRight: () -> Bool
    private static let longestFile = 64 << 20

    /// `days` is how long events are kept; 0: none are. `isClockRight` says whether the clock of the host is synchronised.
    package init(
        folder: String,
        days: Int,
        isClockRight: @escaping () -> Bool = { clinux_clock_is_synchronised() != 0 }
    ) {
        parent = folder
        self.folder = folder + "/kept"
        self.days = days
        self.isClockRight = isClockRight
    }

    func add(_ topic: String, _ payload: [UInt8], now: Int64 = EventStore.now) {
        guard days > 0 else { return }
        let path = "\(folder)/\(Self.name(now))"
        if access(path, F_OK) != 0 { prune(now) }
        guard case .file(let descriptor) = PlainFile.open(path, flags: O_RDWR | O_CREAT | O_APPEND) else { return }
        defer { close(descriptor) }
        let length = lseek(descriptor, 0, SEEK_END)
        var last: UInt8 = 0x0A
        if length > 0 { pread(descriptor, &last, 1, length - 1) }
        // The disk was full, or the power was cut, in the middle of a line.
        var line = last == 0x0A ? [] : [0x0A] as [UInt8]
        line += Array(topic.utf8) + [0x20] + payload + [0x0A]
        guard length + line.count <= Self.longestFile else { return }
        _ = write(descriptor, line, line.count)
    }

    /// Removes the files of days that are over; all of them if none are kept. A clock that may be wrong does not say which
    /// these are: then the newest files stay, one more than there are days.
    package func prune(_ now: Int64 = EventStore.now) {
        mkdir(folder, 0o700)
        let names = names
        let oldest = Self.name(now - Int64(days) * 86_400_000)
        let over = isClockRight() ? names.prefix { $0 < oldest } : names.dropLast(days + 1)
        for name in days == 0 ? names[...] : over { unlink("\(folder)/\(name)") }
    }

    private static func name(_ time: Int64) -> String { CalendarDay(of: Int(time / 1000)).text + ".events" }

    private var names: [String] {
        Folder.names(in: folder) { $0.hasSuffix(".events") }?.sorted() ?? []
    }

    /// Gives the lines of all events from a number on, in the order in which the broker had them by the clock of the host,
    /// each once.
    /// - Throws: `StartError` if events cannot be read. The other ones are given before.
    package func lines(from first: Int, each: (String) -> Void) throws(StartError) {
        var given: [String: Set<Int>] = [:]
        var faults: [String] = []
        if Folder.names(in: folder) == nil {
            let code = errno
            // The first event makes the folder.
            if code != ENOENT || access(parent, F_OK) != 0 { faults.append("\(folder): \(errorText(code))") }
        }
        for name in names {
            let path = "\(folder)/\(name)"
            let bytes: [UInt8]
            switch PlainFile.read(path, limit: Self.longestFile) {
            case .bytes(let content): bytes = content
            // Its days are over.
            case .missing: continue
            case .tooLong:
                faults.append("\(path): it is too long")
                continue
            case .failed(let reason):
                faults.append("\(path): \(reason)")
                continue
            }
            for line in bytes.split(separator: 0x0A) {
                guard let space = line.firstIndex(of: 0x20), let event = try? JSON(line[(space + 1)...]),
                    let sequence = event["sequence"]?.int, let epoch = event["epoch"]?.string
                else { continue }
                let key = String(decoding: line[..<space], as: UTF8.self) + epoch
                guard sequence >= first, given[key, default: []].insert(sequence).inserted else { continue }
                each(String(decoding: line, as: UTF8.self))
            }
        }
        guard faults.isEmpty else {
            throw StartError(
                "cannot read events: \(faults.joined(separator: "; "))",
                hint: "correct [queue] folder, or run this as root or as user badged-mqtt"
            )
        }
    }
}
