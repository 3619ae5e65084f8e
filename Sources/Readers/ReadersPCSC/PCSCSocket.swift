// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host

/// The socket of pcscd in the file system.
struct PCSCSocket: Sendable {
    let path: String

    /// The socket that libpcsclite uses: $PCSCLITE_CSOCK_NAME, else /run/pcscd/pcscd.comm.
    static var standard: PCSCSocket {
        PCSCSocket(path: getenv("PCSCLITE_CSOCK_NAME").map { String(cString: $0) } ?? "/run/pcscd/pcscd.comm")
    }

    /// Identifies one file among successive files of the same name. Times are left out, because pcscd changes the mode
    /// of its socket while it listens.
    struct Identity: Equatable, Sendable {
        let device: UInt64
        let inode: UInt64
    }

    /// The identity of the current socket file; nil when there is none.
    var identity: Identity? { Self.status(of: path).map { $0.identity } }

    fileprivate static func status(of path: String) -> (identity: Identity, isFolder: Bool)? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return (
            Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino)), status.st_mode & S_IFMT == S_IFDIR
        )
    }

    /// The folder of the socket and all folders above it, nearest first.
    var folders: [String] {
        var parts = path.split(separator: "/").dropLast()
        var list: [String] = []
        while !parts.isEmpty {
            list.append("/" + parts.joined(separator: "/"))
            parts = parts.dropLast()
        }
        return list + ["/"]
    }

    /// The number of connections that processes of this network namespace have to the socket. proc(5), /proc/net/unix.
    var connections: Int {
        guard case .bytes(let table) = PlainFile.read("/proc/self/net/unix", limit: 1 << 24) else { return 0 }
        return Self.connections(in: table, path: path)
    }

    /// The lines of connected sockets with this path: those that the listening process has accepted.
    static func connections(in table: [UInt8], path: String) -> Int {
        table.split(separator: 0x0A).count { line in
            let columns = line.split(separator: 0x20, maxSplits: 7)
            return columns.count == 8 && columns[5].elementsEqual("03".utf8) && columns[7].elementsEqual(path.utf8)
        }
    }

    /// Connects once and closes the connection.
    /// - Returns: errno of the connect, 0 when a process listens.
    func tryConnect() -> Int32 {
        guard let address = UnixAddress(path: path) else { return ENAMETOOLONG }
        let fd = socket(
            AF_UNIX,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
            0
        )
        guard fd >= 0 else { return errno }
        defer { close(fd) }
        let code = address.withPointer { connect(fd, $0, $1) }
        // EAGAIN means a full backlog of a process that listens.
        return code == 0 || errno == EAGAIN ? 0 : errno
    }
}

/// Wakes one thread when the socket file of pcscd may have changed, or when another thread calls `signal`.
///
/// inotify watches the folder of the socket or, while that does not exist, the nearest folder above. So the thread
/// sleeps while there is no pcscd, and wakes up when pcscd starts.
final class SocketWatch: @unchecked Sendable {
    private let socket: PCSCSocket
    private let inotify: Int32
    private let event: Int32
    /// The watched folder; only for the waiting thread.
    private var watched: (path: String, identity: PCSCSocket.Identity, descriptor: Int32)?

    /// nil when the system has no descriptor left.
    init?(_ socket: PCSCSocket) {
        self.socket = socket
        inotify = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        event = clinux_eventfd()
        guard inotify >= 0, event >= 0 else { return nil }
    }

    deinit {
        close(inotify)
        close(event)
    }

    /// Ends the current `wait`, or the next one.
    func signal() {
        var one: UInt64 = 1
        _ = write(event, &one, MemoryLayout<UInt64>.size)
    }

    /// Watches the folder that exists now. The caller checks the socket afterwards, for changes before this call.
    func arm() {
        let what = UInt32(
            IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
        )
        // A folder may appear or disappear between the check and the watch, so both are repeated until they agree.
        while true {
            var nearest: (String, PCSCSocket.Identity)?
            for path in socket.folders {
                guard let status = PCSCSocket.status(of: path), status.isFolder else { continue }
                nearest = (path, status.identity)
                break
            }
            guard let (path, identity) = nearest else { return }
            if let watched, watched.path == path, watched.identity == identity { return }
            if let watched { inotify_rm_watch(inotify, watched.descriptor) }
            let descriptor = inotify_add_watch(inotify, path, what)
            guard descriptor >= 0 else {
                watched = nil
                // Any other error means that the system has no watch left, so a retry would fail, too.
                if errno == ENOENT || errno == ENOTDIR { continue }
                return
            }
            watched = (path, identity, descriptor)
        }
    }

    /// Blocks until the watched folder changes, `signal` is called, or the time limit has passed.
    /// - Parameter milliseconds: nil without limit.
    func wait(milliseconds: Int?) {
        var fds = [
            pollfd(fd: inotify, events: Int16(POLLIN), revents: 0),
            pollfd(fd: event, events: Int16(POLLIN), revents: 0),
        ]
        _ = poll(&fds, UInt(fds.count), Int32(milliseconds ?? -1))
        // The content of the events does not matter, because the caller checks the socket.
        var buffer = [UInt8](repeating: 0, count: 4096)
        while read(inotify, &buffer, buffer.count) > 0 {}
        var count: UInt64 = 0
        _ = read(event, &count, MemoryLayout<UInt64>.size)
    }
}
