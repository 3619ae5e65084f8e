// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// Files that only the user of this process may read.
enum PrivateFile {
    /// Opens or makes an empty file with mode 0600, and checks who may use the file.
    static func prepare(_ path: String) throws(Failure) {
        guard let descriptor = try open(path, O_RDWR | O_CREAT) else { throw failure(path) }
        defer { close(descriptor) }
        try check(descriptor, path)
    }

    /// Reads a file of at most `limit` bytes; nil if there is no such file.
    static func read(_ path: String, limit: Int, checksOwner: Bool) throws(Failure) -> Secret? {
        guard let descriptor = try open(path, O_RDONLY) else { return nil }
        defer { close(descriptor) }
        if checksOwner { try check(descriptor, path) }
        var count = 0
        let content = try Secret(count: limit + 1) { buffer throws(Failure) in
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
    static func create(_ path: String, _ content: borrowing Secret) throws(Failure) {
        let draft = path + ".new"
        unlink(draft)
        let descriptor = Glibc.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(draft) }
        defer {
            close(descriptor)
            unlink(draft)
        }
        let written = content.withBytes { write(descriptor, $0.baseAddress, $0.count) }
        guard written == content.count, fsync(descriptor) == 0, link(draft, path) == 0 else { throw failure(path) }
        synchronizeFolder(of: path)
    }

    /// Opens a plain file; nil with `errno` if there is none.
    private static func open(_ path: String, _ flags: Int32) throws(Failure) -> Int32? {
        switch PlainFile.open(path, flags: flags | O_NOFOLLOW) {
        case .file(let descriptor): return descriptor
        case .missing: return nil
        case .failed(let reason): throw .storeUnavailable("cannot use \(path): \(reason)")
        }
    }

    /// Whether there is a plain file at a path, or nothing. The file is not opened: to close it would drop the locks
    /// that this process has on it. fcntl_locking(2)
    static func isPlainOrMissing(_ path: String) -> Bool {
        var state = stat()
        return lstat(path, &state) != 0 || state.st_mode & S_IFMT == S_IFREG
    }

    /// Refuses a folder that other users can change.
    static func checkFolder(_ path: String) throws(Failure) {
        var state = stat()
        // A folder that is missing is an error when the first file is opened.
        guard stat(path, &state) == 0 else { return }
        guard !PlainFile.isExposed(state, addsFiles: true) else { throw .storeExposed(path) }
    }

    private static func synchronizeFolder(of path: String) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private static func check(_ descriptor: Int32, _ path: String) throws(Failure) {
        var state = stat()
        guard fstat(descriptor, &state) == 0 else { throw failure(path) }
        guard state.st_uid == geteuid(), state.st_mode & 0o077 == 0 else {
            throw .storeExposed(path)
        }
    }

    private static func failure(_ path: String) -> Failure {
        .storeUnavailable("cannot use \(path): \(errorText())")
    }
}
