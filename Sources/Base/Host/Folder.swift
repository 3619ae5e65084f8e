// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// Lists folders, and brings them to the disk. opendir(3), readdir(3), syncfs(2).
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

    /// Brings the file system of a folder to the disk. For many new files this is quicker than fsync for each of them.
    package static func synchronizeFileSystem(of path: String) throws(SystemError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError(path) }
        defer { close(descriptor) }
        guard clinux_sync_file_system(descriptor) == 0 else { throw SystemError(path) }
    }
}
