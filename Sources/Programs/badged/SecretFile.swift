// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host
import Secrets

/// A file of the configuration that only the user of the daemon may read.
enum SecretFile {
    /// Reads at most `limit` bytes and one more, so that a longer file is seen. `setting` is the key of the configuration
    /// that names the file, for messages.
    /// - Throws: `StartError` if the file cannot be read, or if other users can read it.
    static func read(
        _ path: String,
        limit: Int,
        setting: String,
        _ environment: Environment
    ) throws(StartError) -> Secret {
        let descriptor = clinux_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            throw .inConfiguration(
                "cannot read \(path): \(String(cString: strerror(errno)))",
                hint: "it must belong to the user of the daemon: chown badged: \(path)"
            )
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .inConfiguration("\(path) is not a file", hint: "correct \(setting)")
        }
        // systemd protects the files of LoadCredential= by an access list, whose mask looks like rights of the group.
        let isCredential = environment("CREDENTIALS_DIRECTORY").map { !$0.isEmpty && path.hasPrefix($0 + "/") } ?? false
        guard isCredential || status.st_mode & 0o077 == 0 else {
            throw .inConfiguration(
                "\(path) can be read by other users",
                hint: "chown badged: \(path) && chmod 600 \(path)"
            )
        }
        var count = 0
        let content = Secret(count: limit + 1) { memory in
            count = max(Glibc.read(descriptor, memory.baseAddress, memory.count), 0)
        }
        guard let part = content.part(0..<count) else { throw .inConfiguration("cannot read \(path)", hint: setting) }
        return part
    }
}
