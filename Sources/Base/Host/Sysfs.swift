// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Reads the files in which the kernel describes devices. sysfs(5).
package enum Sysfs {
    /// Returns the names in a folder; none if the folder does not exist.
    package static func names(in folder: String) -> [String] { Folder.names(in: folder) ?? [] }

    /// Returns the first line of an attribute, at most 256 bytes.
    package static func line(_ path: String...) -> String? {
        guard let file = fopen(path.joined(separator: "/"), "re") else { return nil }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = fread(&buffer, 1, buffer.count, file)
        return String(decoding: buffer.prefix(count).prefix { $0 != 0x0A }, as: UTF8.self)
    }

    /// Returns the name of the target of a link.
    package static func link(_ path: String...) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path.joined(separator: "/"), &buffer, buffer.count)
        guard count > 0 else { return nil }
        let target = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return target.split(separator: "/").last.map(String.init)
    }
}
