// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Secrets

/// Files that only the user of this process may read.
enum PrivateFile {
    /// Opens or makes an empty file with mode 0600, and checks who may use the file.
    static func prepare(_ path: String) throws(StoreError) {
        let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(path) }
        defer { close(descriptor) }
        try check(descriptor, path)
    }

    /// Reads a file of at most `limit` bytes; nil if there is no such file.
    static func read(_ path: String, limit: Int, checksOwner: Bool) throws(StoreError) -> Secret? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw failure(path)
        }
        defer { close(descriptor) }
        if checksOwner { try check(descriptor, path) }
        var count = 0
        let content = try Secret(count: limit + 1) { buffer throws(StoreError) in
            while count < buffer.count {
                let result = Glibc.read(descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count)
                if result < 0, errno == EINTR { continue }
                guard result >= 0 else { throw failure(path) }
                if result == 0 { break }
                count += result
            }
        }
        return content.part(0..<count)
    }

    /// Writes a new file whole: after a power cut there is the whole file or none.
    /// - Throws: `.unavailable`, also if the file exists.
    static func create(_ path: String, _ content: borrowing Secret) throws(StoreError) {
        let draft = path + ".new"
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(draft) }
        defer {
            close(descriptor)
            unlink(draft)
        }
        let written = content.withBytes { write(descriptor, $0.baseAddress, $0.count) }
        guard written == content.count, fsync(descriptor) == 0, link(draft, path) == 0 else { throw failure(path) }
        synchronizeFolder(of: path)
    }

    private static func synchronizeFolder(of path: String) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private static func check(_ descriptor: Int32, _ path: String) throws(StoreError) {
        var state = stat()
        guard fstat(descriptor, &state) == 0 else { throw failure(path) }
        guard state.st_mode & S_IFMT == S_IFREG, state.st_uid == geteuid(), state.st_mode & 0o077 == 0 else {
            throw .exposed(path)
        }
    }

    private static func failure(_ path: String) -> StoreError {
        .unavailable("cannot use \(path): \(String(cString: strerror(errno)))")
    }
}
