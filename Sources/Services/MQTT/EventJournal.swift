// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// Events that the broker has acknowledged, for consumers whose broker has lost them: `[queue] keep`. Each day has a file
/// of lines `TOPIC EVENT`. A file that cannot be written is no reason to stop.
package struct EventJournal {
    private let folder: String
    private let days: Int
    private static let longestFile = 64 << 20

    /// `days` is how long events are kept; 0: none are.
    package init(folder: String, days: Int) { (self.folder, self.days) = (folder + "/kept", days) }

    func add(_ topic: String, _ payload: [UInt8], now: Int64 = EventStore.now) {
        guard days > 0 else { return }
        let path = "\(folder)/\(Self.name(now))"
        if access(path, F_OK) != 0 { prune(now) }
        guard case .file(let descriptor) = PlainFile.open(path, flags: O_WRONLY | O_CREAT | O_APPEND) else { return }
        defer { close(descriptor) }
        let line = Array(topic.utf8) + [0x20] + payload + [0x0A]
        guard lseek(descriptor, 0, SEEK_END) + line.count <= Self.longestFile else { return }
        _ = write(descriptor, line, line.count)
    }

    /// Removes the files of days that are over; all of them if none are kept.
    package func prune(_ now: Int64 = EventStore.now) {
        mkdir(folder, 0o700)
        let oldest = Self.name(now - Int64(days) * 86_400_000)
        for name in names where days == 0 || name < oldest { unlink("\(folder)/\(name)") }
    }

    private static func name(_ time: Int64) -> String { CalendarDay(of: Int(time / 1000)).text + ".events" }

    private var names: [String] {
        Folder.names(in: folder) { $0.hasSuffix(".events") }?.sorted() ?? []
    }

    /// Gives the lines of all events from a number on, in the order in which the broker had them, each once.
    package func lines(from first: Int, each: (String) -> Void) {
        var newest: [String: Int] = [:]
        for name in names {
            guard case .bytes(let bytes) = PlainFile.read("\(folder)/\(name)", limit: Self.longestFile) else {
                continue
            }
            for line in bytes.split(separator: 0x0A) {
                guard let space = line.firstIndex(of: 0x20), let event = try? JSON(line[(space + 1)...]),
                    let sequence = event["sequence"]?.int, let epoch = event["epoch"]?.string
                else { continue }
                let key = String(decoding: line[..<space], as: UTF8.self) + epoch
                guard sequence >= first, sequence > newest[key] ?? 0 else { continue }
                newest[key] = sequence
                each(String(decoding: line, as: UTF8.self))
            }
        }
    }
}
