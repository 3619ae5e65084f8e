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

    /// Opens a new file, or an old one without its content. Nobody else may read a new one.
    static func create(_ path: String, flags: Int32 = 0) throws -> Int32 {
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0o600)
        guard file >= 0 else { throw cannotWrite(path) }
        return file
    }

    /// Checks before a long dialogue that its result can be written to a file.
    static func check(_ path: String) throws {
        var status = stat()
        let isThere = stat(path, &status) == 0
        if isThere, status.st_mode & S_IFMT == S_IFDIR {
            errno = EISDIR
            throw cannotWrite(path)
        }
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        guard access(isThere ? path : folder, isThere ? W_OK : W_OK | X_OK) == 0 else { throw cannotWrite(path) }
    }

    /// Writes all of the bytes to the end of a file.
    static func append(_ bytes: [UInt8], _ file: Int32, _ path: String) throws {
        guard Output.write(bytes, to: file) else { throw cannotWrite(path) }
    }

    /// Writes a file.
    static func write(_ bytes: [UInt8], to path: String, flags: Int32 = 0) throws {
        let file = try create(path, flags: flags)
        defer { close(file) }
        try append(bytes, file, path)
    }

    private static func cannotWrite(_ path: String) -> CommandFailure {
        CommandFailure(tr("cannot write \(path): \(DaemonWords.text(errorText()))"), hint: tr("name another file"))
    }

    private static let notAFile = Phrase("it is neither a file nor a pipe")

    private static func cannotRead(_ path: String, _ reason: String) -> CommandFailure {
        let said = notAFile.read(reason).map(tr) ?? DaemonWords.text(reason)
        return CommandFailure(tr("cannot read \(path): \(said)"), hint: tr("name another file"))
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
