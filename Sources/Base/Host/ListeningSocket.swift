// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Synchronization

/// The socket that clients connect to: listening, non-blocking, closed on exec.
package final class ListeningSocket: Sendable {
    package let descriptor: Int32
    /// The path of the socket. For a socket that systemd passes, the kernel reports the path.
    package let path: String
    package let isFromSystemd: Bool
    /// Device and inode of the socket file that badged made.
    private let file: FileIdentity?
    private let isClosed = Mutex(false)

    init(descriptor: Int32, path: String, file: FileIdentity?) {
        self.descriptor = descriptor
        self.path = path
        self.file = file
        isFromSystemd = file == nil
    }

    /// Opens the socket: the one that systemd passes, otherwise one at `--socket`, at the path of the configuration, or
    /// at the default path.
    package static func open(
        options: CommandLineOptions,
        configuration: Configuration,
        environment: Environment = systemEnvironment
    ) throws(StartError) -> ListeningSocket {
        if let passed = try SocketActivation.socket(environment: environment) { return passed }
        if let chosen = options.socketPath ?? configuration.socketPath { return try bind(to: chosen) }
        let path = try usualPath(user: geteuid(), environment: environment)
        makeFolder(of: path)
        return try bind(to: path)
    }

    /// The default path: /run/badged for root and service users (below 1000), XDG_RUNTIME_DIR for other users.
    static func usualPath(user: UInt32, environment: Environment) throws(StartError) -> String {
        if user < 1000 { return "/run/badged/badged.sock" }
        guard let folder = environment("XDG_RUNTIME_DIR"), folder.hasPrefix("/") else {
            throw StartError(
                "no path for the socket: XDG_RUNTIME_DIR is not set",
                hint: "set a path with --socket PATH"
            )
        }
        return folder + "/badged/badged.sock"
    }

    /// Stops listening and removes the socket file, if badged made that file. Further calls do nothing.
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

/// Device and inode of a file.
struct FileIdentity: Sendable, Equatable {
    var device: UInt64
    var inode: UInt64
    var mode: UInt32

    init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        mode = status.st_mode
    }

    /// Reads device and inode of the path itself; does not follow a symbolic link.
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
