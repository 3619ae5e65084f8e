// SPDX-License-Identifier: GPL-3.0-or-later
import FoundationEssentials
import Glibc
import Host

/// The memory of another process.
package enum ProcessMemory {
    /// Whether the test can read it: as root, and without the shadow memory of a sanitizer.
    package static var isReadable: Bool { geteuid() == 0 && !Spawn.isSanitized }

    /// Returns how often these bytes occur in the memory that the process can write.
    package static func occurrences(of bytes: [UInt8], in pid: Int32) throws -> Int {
        let maps = FileManager.default.contents(atPath: "/proc/\(pid)/maps") ?? Data()
        let memory = open("/proc/\(pid)/mem", O_RDONLY | O_CLOEXEC)
        guard memory >= 0 else { throw SystemError("open /proc/\(pid)/mem") }
        defer { close(memory) }
        var count = 0
        for line in String(decoding: maps, as: UTF8.self).split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count >= 2, fields[1].hasPrefix("rw") else { continue }
            let range = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard range.count == 2 else { continue }
            var content = [UInt8](repeating: 0, count: Int(range[1] - range[0]))
            let got = pread(memory, &content, content.count, off_t(range[0]))
            guard got > 0 else { continue }
            count += occurrences(of: bytes, in: content[..<got])
        }
        return count
    }

    private static func occurrences(of needle: [UInt8], in hay: ArraySlice<UInt8>) -> Int {
        hay.withUnsafeBytes { hay in
            guard let first = needle.first, let base = hay.baseAddress else { return 0 }
            var (count, start) = (0, 0)
            while let found = memchr(base + start, Int32(first), hay.count - start) {
                let position = base.distance(to: found)
                if hay[position...].starts(with: needle) { count += 1 }
                start = position + 1
            }
            return count
        }
    }
}
