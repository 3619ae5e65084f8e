// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Text

/// Reads and writes files that the command line names. They may be pipes.
enum FileContent {
    /// Reads a file of at most `limit` bytes.
    static func read(_ path: String, limit: Int) throws -> [UInt8] {
        let content: PlainFile.Content
        switch PlainFile.openNamed(path) {
        case .file(let descriptor):
            defer { close(descriptor) }
            content = PlainFile.read(descriptor, limit: limit)
        case .missing: content = .missing
        case .failed(let reason): content = .failed(reason)
        }
        switch content {
        case .bytes(let bytes): return bytes
        case .tooLong:
            let size = limit < 1 << 20 ? "\(limit >> 10) KiB" : "\(limit >> 20) MiB"
            throw CommandFailure(tr("\(path) is longer than \(size)"), hint: tr("name another file"))
        case .missing: throw cannotRead(path, tr("there is no such file"))
        case .failed(let reason): throw cannotRead(path, reason)
        }
    }

    /// Opens a new file, or an old one without its content. Nobody else may read a new one. A pipe that nobody reads is
    /// refused: opening it would wait for a reader.
    static func create(_ path: String, flags: Int32 = 0) throws -> Int32 {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | flags, 0o600)
        guard file >= 0 else {
            throw errno == ENXIO ? cannotWrite(path, tr("nobody reads this pipe")) : cannotWrite(path)
        }
        _ = fcntl(file, F_SETFL, fcntl(file, F_GETFL) & ~O_NONBLOCK)
        return file
    }

    /// Checks before a long dialogue that files can be written to a folder.
    static func checkFolder(_ path: String) throws {
        if let mode = mode(path), mode != S_IFDIR { errno = ENOTDIR } else if access(path, W_OK | X_OK) == 0 { return }
        let reason = DaemonWords.text(errorText())
        throw CommandFailure(tr("cannot write to \(path): \(reason)"), hint: tr("name a folder that is there"))
    }

    /// Checks before a long dialogue that its result can be written to a file.
    static func check(_ path: String) throws {
        if mode(path) == S_IFDIR {
            errno = EISDIR
            throw cannotWrite(path)
        }
        let isThere = mode(path) != nil
        guard access(isThere ? path : folder(of: path), isThere ? W_OK : W_OK | X_OK) == 0 else {
            throw cannotWrite(path)
        }
    }

    /// Checks before a dialogue that `writePersonal` can write its result.
    static func checkPersonal(_ path: String) throws {
        switch linkMode(path) {
        case nil, S_IFDIR: try check(path)
        // The file is replaced.
        case S_IFREG: guard access(folder(of: path), W_OK | X_OK) == 0 else { throw cannotWrite(path) }
        case S_IFLNK: throw cannotWrite(path, tr("it is a symbolic link"))
        case S_IFIFO: throw cannotWrite(path, tr("it is a pipe"))
        default: throw cannotWrite(path, tr("it is not a plain file"))
        }
    }

    /// Writes bytes to a file. Returns false, with errno, if the file does not take them all.
    typealias Write = ([UInt8], Int32) -> Bool

    /// Writes data of a person to a file that nobody else may read. An old file is replaced, since others may read it.
    static func writePersonal(
        _ bytes: [UInt8],
        to path: String,
        by write: Write = { Output.write($0, to: $1) }
    ) throws {
        try checkPersonal(path)
        try replace(path, with: bytes, mode: 0o600, by: write)
    }

    /// Writes a new file in the same folder, and gives it the name when it is on the disk. Until then the old one stays.
    private static func replace(_ path: String, with bytes: [UInt8], mode: mode_t, by write: Write) throws {
        let name = ".badgectl-\(getpid())-\(UInt64.random(in: 0 ... .max))"
        let draft = "\(folder(of: path))/\(name)"
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw cannotWrite(path) }
        let isWritten = fchmod(file, mode) == 0 && write(bytes, file) && synchronize(file)
        var code = errno
        // Some file systems tell only now that the disk is full.
        let isClosed = close(file) == 0
        if isWritten, isClosed, rename(draft, path) == 0 { return synchronizeFolder(of: path) }
        if isWritten { code = errno }
        unlink(draft)
        errno = code
        throw cannotWrite(path)
    }

    /// Brings a file to the disk. Some file systems cannot.
    private static func synchronize(_ file: Int32) -> Bool {
        fsync(file) == 0 || errno == EINVAL || errno == ENOSYS
    }

    private static func synchronizeFolder(of path: String) {
        let descriptor = open(folder(of: path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    private static func folder(of path: String) -> String {
        let end = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        return end.map { String(decoding: path.utf8[...$0], as: UTF8.self) } ?? "."
    }

    /// The kind of file, nil if there is none.
    private static func mode(_ path: String) -> mode_t? {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }

    /// The same, of a link itself.
    private static func linkMode(_ path: String) -> mode_t? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : nil
    }

    /// Writes all of the bytes to the end of a file.
    static func append(_ bytes: [UInt8], _ file: Int32, _ path: String) throws {
        guard Output.write(bytes, to: file) else { throw cannotWrite(path) }
    }

    /// Writes a file. A plain file of the user is replaced when the new one is on the disk. What else stands at the path,
    /// such as a pipe, takes the bytes.
    static func write(
        _ bytes: [UInt8],
        to path: String,
        by write: Write = { Output.write($0, to: $1) }
    ) throws {
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1,
            status.st_uid == geteuid(), access(path, W_OK) == 0, access(folder(of: path), W_OK | X_OK) == 0
        {
            return try replace(path, with: bytes, mode: status.st_mode & 0o777, by: write)
        }
        let file = try create(path)
        defer { close(file) }
        guard write(bytes, file) else { throw cannotWrite(path) }
    }

    private static func cannotWrite(_ path: String, _ reason: String? = nil) -> CommandFailure {
        let said = reason ?? DaemonWords.text(errorText())
        return CommandFailure(tr("cannot write \(path): \(said)"), hint: tr("name another file"))
    }

    private static func cannotRead(_ path: String, _ reason: String) -> CommandFailure {
        CommandFailure(tr("cannot read \(path): \(DaemonWords.text(reason))"), hint: tr("name another file"))
    }
}

extension Invocation {
    /// A text, or the content of the file with this path.
    static func textOrFile(_ argument: String) -> String {
        guard case .bytes(let bytes) = PlainFile.read(argument, limit: 65_536), !bytes.isEmpty,
            let text = String(validating: bytes, as: UTF8.self)
        else { return argument }
        return text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}
