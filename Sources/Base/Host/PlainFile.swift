// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Glibc

/// Files and folders whose content decides what badged does.
package enum PlainFile {
    /// What was found at a path.
    package enum Opened: Sendable, Equatable {
        /// The descriptor of a plain file, closed on exec.
        case file(Int32)
        case missing
        /// The reason in words. Anything else than a plain file is refused.
        case failed(String)
    }

    /// Opens a plain file. Never waits for the other end of a FIFO, or for a device.
    package static func open(_ path: String, flags: Int32 = O_RDONLY) -> Opened {
        let descriptor = clinux_open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: return .missing
            case ENXIO, EISDIR: return notPlain
            default: return .failed(errorText())
            }
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            return notPlain
        }
        return .file(descriptor)
    }

    /// What a file holds.
    package enum Content: Sendable, Equatable {
        case bytes([UInt8])
        case missing
        /// The file has more bytes than were asked for.
        case tooLong
        case failed(String)
    }

    /// Reads a plain file of at most `limit` bytes.
    package static func read(_ path: String, limit: Int) -> Content {
        switch open(path) {
        case .file(let descriptor):
            defer { close(descriptor) }
            return read(descriptor, limit: limit)
        case .missing: return .missing
        case .failed(let reason): return .failed(reason)
        }
    }

    /// Reads at most `limit` bytes to the end of an open file.
    package static func read(_ descriptor: Int32, limit: Int) -> Content {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count <= limit {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return .failed(errorText()) }
            if count == 0 { return .bytes(bytes) }
            bytes += buffer.prefix(count)
        }
        return .tooLong
    }

    private static let notPlain = Opened.failed("it is not a plain file")

    /// Refuses a path of the configuration that is no plain file, or that other users can change.
    package static func check(_ path: String, of setting: String) throws(StartError) {
        switch open(path) {
        case .file(let descriptor):
            defer { close(descriptor) }
            try check(descriptor, path)
        case .missing: throw .inConfiguration("there is no file \(path)", hint: "correct \(setting)")
        case .failed(let reason): throw .inConfiguration("cannot read \(path): \(reason)", hint: "correct \(setting)")
        }
    }

    /// Refuses a file that other users can change, and a file in a folder where other users can replace it.
    static func check(_ descriptor: Int32, _ path: String) throws(StartError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, !isExposed(status) else { throw exposed(path) }
        try checkFolder(path.lastIndex(of: "/").map { String(path[...$0]) } ?? ".")
    }

    /// Refuses a folder that other users can change. A folder that is missing is accepted.
    package static func checkFolder(_ path: String) throws(StartError) {
        var status = stat()
        guard stat(path, &status) == 0, isExposed(status) else { return }
        throw exposed(path)
    }

    private static func exposed(_ path: String) -> StartError {
        .inConfiguration(
            "other users can change \(path)",
            hint: "it must belong to root or to the user of badged, who alone may write to it: chmod go-w \(path)"
        )
    }

    /// Whether users other than root and the user of this process can change a file, or the names in a folder.
    package static func isExposed(_ status: stat, user: UInt32 = geteuid()) -> Bool {
        guard status.st_uid == 0 || status.st_uid == user else { return true }
        // In a sticky folder nobody can replace the files of others.
        if status.st_mode & S_IFMT == S_IFDIR, status.st_mode & S_ISVTX != 0 { return false }
        // Many systems give each person a group of the same number. The clients of a service are in its group.
        let isOwnGroup = status.st_gid == 0 || user >= 1000 && status.st_gid == user
        return status.st_mode & S_IWOTH != 0 || status.st_mode & S_IWGRP != 0 && !isOwnGroup
    }
}
