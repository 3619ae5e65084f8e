// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Synchronization

/// The socket that clients connect to: listening, non-blocking, closed on exec.
package final class ListeningSocket: Sendable {
    package let descriptor: Int32
    /// Where clients find it; for a socket of systemd, what the kernel says.
    package let path: String
    package let isFromSystemd: Bool
    /// Device and inode of the file that we made.
    private let file: FileIdentity?
    private let isClosed = Mutex(false)

    init(descriptor: Int32, path: String, file: FileIdentity?) {
        (self.descriptor, self.path, self.file) = (descriptor, path, file)
        isFromSystemd = file == nil
    }

    /// The socket that systemd passes, else `--socket`, else the configuration's, else the usual place.
    package static func open(
        options: CommandLineOptions,
        configuration: Configuration,
        environment: Environment = systemEnvironment
    ) throws(StartError) -> ListeningSocket {
        if let passed = try SocketActivation.socket(environment: environment) { return passed }
        let path: String
        if let chosen = options.socketPath ?? configuration.socketPath {
            path = chosen
        } else {
            path = try usualPath(user: geteuid(), environment: environment)
        }
        return try bind(to: path)
    }

    /// Root and service users (below 1000) serve the computer, others themselves.
    static func usualPath(user: UInt32, environment: Environment) throws(StartError) -> String {
        if user < 1000 { return "/run/badged/badged.sock" }
        guard let folder = environment("XDG_RUNTIME_DIR"), folder.hasPrefix("/") else {
            throw StartError(
                "no place for the socket: XDG_RUNTIME_DIR is not set",
                hint: "name a path with --socket PATH"
            )
        }
        return folder + "/badged/badged.sock"
    }

    /// Stops listening and removes the file, if it is still the one we made. Later calls do nothing.
    package func close() {
        let isFirst = isClosed.withLock { closed in
            defer { closed = true }
            return !closed
        }
        guard isFirst else { return }
        if let file, FileIdentity(path: path) == file { unlink(path) }
        Glibc.close(descriptor)
    }

    deinit { close() }
}

/// Device and inode.
struct FileIdentity: Sendable, Equatable {
    var device: UInt64
    var inode: UInt64
    var mode: UInt32

    init(_ status: stat) {
        (device, inode, mode) = (UInt64(status.st_dev), UInt64(status.st_ino), status.st_mode)
    }

    /// Of the path itself, not of what a symbolic link points to.
    init?(path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    init?(descriptor: Int32) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        self.init(status)
    }

    var isSocket: Bool { mode & S_IFMT == S_IFSOCK }

    static func == (left: FileIdentity, right: FileIdentity) -> Bool {
        left.device == right.device && left.inode == right.inode
    }
}
