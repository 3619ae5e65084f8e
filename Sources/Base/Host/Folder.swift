// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Lists folders. opendir(3), readdir(3).
package enum Folder {
    /// Returns the names in a folder that are wanted, in no order, without `.` and `..`; nil with `errno` if the folder
    /// cannot be read.
    package static func names(
        in path: String,
        limit: Int = .max,
        where isWanted: (String) -> Bool = { _ in true }
    ) -> [String]? {
        guard let stream = opendir(path) else { return nil }
        defer { closedir(stream) }
        var names: [String] = []
        while names.count < limit, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != "..", isWanted(name) { names.append(name) }
        }
        return names
    }
}
