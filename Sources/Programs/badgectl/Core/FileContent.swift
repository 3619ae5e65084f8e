// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Reads files that the command line names.
enum FileContent {
    /// Reads a file of at most `limit` bytes.
    static func read(_ path: String, limit: Int) throws(Failure) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw cannotRead(path) }
        defer { close(descriptor) }
        var (content, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while content.count <= limit {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw cannotRead(path) }
            if count == 0 { return content }
            content += chunk[..<count]
        }
        let size = limit < 1 << 20 ? "\(limit >> 10) KiB" : "\(limit >> 20) MiB"
        throw Failure(.failed, "\(path) is longer than \(size)", hint: "name another file")
    }

    private static func cannotRead(_ path: String) -> Failure {
        Failure(.failed, "cannot read \(path): \(String(cString: strerror(errno)))", hint: "name another file")
    }
}
