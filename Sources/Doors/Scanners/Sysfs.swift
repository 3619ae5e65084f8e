// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Reads the files in which the kernel describes devices. sysfs(5).
enum Sysfs {
    /// The names in a folder; empty when the folder does not exist.
    static func names(in folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            )
        }
        return names
    }

    /// The first word of a file; nil when the file cannot be read.
    static func word(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = read(file, &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].prefix { $0 > 0x20 }, as: UTF8.self)
    }
}
