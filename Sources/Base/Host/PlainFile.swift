// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Glibc
import Text

/// Files and folders whose content decides what badged does.
package enum PlainFile {
    /// What was found at a path.
    package enum Opened: Sendable, Equatable {
        /// The descriptor of a plain file, closed on exec.
        case file(Int32)
        case missing
        /// The reason in words; `errno` has its number. Anything else than a plain file is refused.
        case failed(String)
    }

    /// Whether the cause of a `.failed` may pass without a change by a person: a fault of the disk, or a lack of memory
    /// or descriptors. Call it before anything else that sets `errno`.
    package static func mayPass(_ code: Int32 = errno) -> Bool {
        [EIO, EAGAIN, EINTR, ENOMEM, EMFILE, ENFILE, ENOBUFS, ESTALE, ETIMEDOUT, EREMOTEIO].contains(code)
    }

    /// Opens a plain file. Never waits for the other end of a FIFO, or for a device.
    package static func open(_ path: String, flags: Int32 = O_RDONLY) -> Opened {
        let descriptor = clinux_open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: return isLink(path) ? .failed("it is a link to a file that is missing") : .missing
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

    /// Whether there is a link of this name. `errno` stays as it is, if so.
    static func isLink(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    /// Opens what a person names on a command line: a plain file, a pipe or a terminal. Never waits until somebody writes
    /// to a FIFO: it is empty then. Folders and other devices are refused.
    package static func openNamed(_ path: String) -> Opened {
        let descriptor = clinux_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { return errno == ENOENT ? .missing : .failed(errorText()) }
        var status = stat()
        let isKnown = fstat(descriptor, &status) == 0
        switch status.st_mode & S_IFMT {
        case S_IFREG, S_IFIFO: break
        case S_IFCHR where isatty(descriptor) == 1 || ["/dev/stdin", "/dev/null"].contains(path): break
        default:
            close(descriptor)
            return isKnown ? .failed("it is neither a file nor a pipe") : .failed(errorText())
        }
        // Reads wait for those who write.
        _ = fcntl(descriptor, F_SETFL, 0)
        return .file(descriptor)
    }

    /// What a file holds.
    package enum Content: Sendable, Equatable {
        case bytes([UInt8])
        case missing
        /// The file has more bytes than were asked for.
        case tooLong
        /// As in `Opened`.
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

    /// Reads a plain file of a folder of authorities. What other users can change is not read.
    package static func readTrusted(_ path: String, limit: Int) -> Content {
        switch open(path) {
        case .file(let descriptor):
            defer { close(descriptor) }
            var status = stat()
            guard fstat(descriptor, &status) == 0, !isExposed(rooted(status)) else {
                errno = EPERM
                return .failed("other users can change it: chown root and chmod go-w make it usable")
            }
            return read(descriptor, limit: limit)
        case .missing: return .missing
        case .failed(let reason): return .failed(reason)
        }
    }

    /// Reads at most `limit` bytes to the end of an open file.
    package static func read(_ descriptor: Int32, limit: Int) -> Content {
        let content = beginning(descriptor, count: limit + 1)
        guard case .bytes(let bytes) = content, bytes.count > limit else { return content }
        return .tooLong
    }

    /// Reads the first `count` bytes of an open file, or all if it has fewer.
    package static func beginning(_ descriptor: Int32, count: Int) -> Content {
        var bytes: [UInt8] = []
        var status = stat()
        // A large file is not copied while the array grows.
        if fstat(descriptor, &status) == 0 { bytes.reserveCapacity(min(Int(status.st_size), count)) }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count < count {
            let number = Glibc.read(descriptor, &buffer, min(buffer.count, count - bytes.count))
            if number < 0, errno == EINTR { continue }
            guard number >= 0 else { return .failed(errorText()) }
            if number == 0 { break }
            bytes += buffer.prefix(number)
        }
        return .bytes(bytes)
    }

    private static var notPlain: Opened {
        errno = EINVAL
        return .failed("it is not a plain file")
    }

    /// Refuses a path of the configuration that is no plain file, or that other users can change.
    package static func check(_ path: String, of setting: String) throws(StartError) {
        switch open(path) {
        case .file(let descriptor):
            defer { close(descriptor) }
            try check(descriptor, path)
        case .missing: throw ConfiguredPath.refusal(path, nil, of: setting)
        case .failed(let reason): throw ConfiguredPath.refusal(path, reason, of: setting, mayPass: mayPass())
        }
    }

    /// Refuses a file that other users can change, and a path at which other users can put another file.
    static func check(_ descriptor: Int32, _ path: String) throws(StartError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, !isExposed(status) else { throw exposed(path) }
        try checkPlace(path)
    }

    /// Refuses a folder that other users can change or replace, or to which they can add files. A folder that is missing
    /// is accepted.
    package static func checkFolder(_ path: String) throws(StartError) {
        try checkPlace(path)
        var status = stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return }
        guard isExposed(rooted(status), addsFiles: true) else { return }
        throw exposed(path)
    }

    /// The largest number of symbolic links in a path, as in the kernel. path_resolution(7)
    private static let maximumLinks = 40

    /// Refuses a path if users other than root and `user` can change one of its folders, or one of the links that lead
    /// to them.
    package static func checkPlace(_ path: String, user: UInt32 = geteuid()) throws(StartError) {
        guard !path.isEmpty else { return }
        func names(_ path: String) -> [Substring] { path.split(separator: "/") }
        var rest = names(path.hasPrefix("/") ? path : workingFolder + "/" + path)
        var (folder, links) = ("", 0)
        try check(folder: "/", user)
        while !rest.isEmpty {
            let name = rest.removeFirst()
            if name == "." { continue }
            if name == ".." {
                folder = names(folder).dropLast().map { "/" + $0 }.joined()
                continue
            }
            let next = "\(folder)/\(name)"
            var status = stat()
            guard lstat(next, &status) == 0 else { return }
            switch status.st_mode & S_IFMT {
            case S_IFDIR:
                try check(folder: next + "/", user)
                folder = next
            case S_IFLNK:
                links += 1
                // Nobody can write to a link; its owner can replace it.
                status.st_mode = 0
                guard !isExposed(rooted(status), user: user) else { throw exposed(next) }
                // Nobody can open such a path.
                guard links <= maximumLinks else { return }
                let target = target(of: next)
                if target.hasPrefix("/") { folder = "" }
                rest = names(target) + rest
            default: return
            }
        }
    }

    private static func check(folder: String, _ user: UInt32) throws(StartError) {
        var status = stat()
        guard stat(folder, &status) == 0, isExposed(rooted(status), user: user) else { return }
        throw exposed(folder)
    }

    private static var workingFolder: String {
        guard let path = getcwd(nil, 0) else { return "" }
        defer { free(path) }
        return String(cString: path)
    }

    private static func target(of link: String) -> String {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = bytes.withUnsafeMutableBytes { memory in
            memory.baseAddress.map { readlink(link, $0, memory.count) } ?? -1
        }
        return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }

    /// A status in which root is the owner of what root owns outside of this user namespace. user_namespaces(7)
    private static func rooted(_ status: stat) -> stat {
        var status = status
        if hidesRoot, status.st_uid == overflowUser { status.st_uid = 0 }
        return status
    }

    private static let overflowUser: UInt32 = 65_534
    /// Whether this process is in a user namespace that does not have the number of root.
    private static let hidesRoot: Bool = {
        guard case .bytes(let map) = read("/proc/self/uid_map", limit: 65_536) else { return false }
        let lines = String(decoding: map, as: UTF8.self).split(separator: "\n").map { $0.split(separator: " ") }
        return !lines.contains { $0.count == 3 && $0[1] == "0" }
    }()

    private static func exposed(_ path: String) -> StartError {
        var status = stat()
        let forRoot: Phrase = stat(path, &status) == 0 ? adviceForRoot(status.st_uid) : ""
        return .inConfiguration(
            saying: Phrase("other users can change \(path)"),
            hint: Phrase(
                "it must belong to root or to the user of badged, who alone may write to it: chmod go-w \(path)\(forRoot)"
            )
        )
    }

    /// What root does to check a file of the user of the daemon; empty for other users, and for files of root.
    static func adviceForRoot(_ owner: UInt32) -> Phrase {
        guard geteuid() == 0, owner != 0, let user = NameService.system.userName(owner) else { return "" }
        let program = CommandLine.arguments.first?.split(separator: "/").last ?? "badged"
        return Phrase(
            "; if it belongs to the user of the daemon, run this as that user: runuser -u \(user) -- \(program) ..."
        )
    }

    /// Whether users other than root and the user of this process can change a file, or the names in a folder. With
    /// `addsFiles` it also counts if they can only add files to a folder.
    package static func isExposed(_ status: stat, user: UInt32 = geteuid(), addsFiles: Bool = false) -> Bool {
        guard status.st_uid == 0 || status.st_uid == user else { return true }
        // In a sticky folder nobody can replace the files of others.
        if status.st_mode & S_IFMT == S_IFDIR, status.st_mode & S_ISVTX != 0, !addsFiles { return false }
        // Many systems give each person a group of the same number. The clients of a service are in its group.
        let isOwnGroup = status.st_gid == 0 || user >= 1000 && status.st_gid == user
        return status.st_mode & S_IWOTH != 0 || status.st_mode & S_IWGRP != 0 && !isOwnGroup
    }
}
