// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A connected stream socket, with a pipe that ends a wait for it. Both are closed with the value.
struct UnixSocket: ~Copyable, Sendable {
    let descriptor: Int32
    private let wakeRead: Int32
    private let wakeWrite: Int32

    /// Longest wait, in seconds, for a server that listens but does not accept.
    private static let timeout = 5

    /// What is possible after a wait.
    struct Readiness {
        var canRead = false
        var canWrite = false
    }

    init(connectingTo path: String) throws(ClientError) {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .unreachable(path: path, cause: Self.cause(errno)) }
        do throws(ClientError) {
            try Self.connect(descriptor, to: path)
        } catch {
            _ = Glibc.close(descriptor)
            throw error
        }
        var pipe: [Int32] = [-1, -1]
        // Not pipe(2): socketpair(2) sets close-on-exec in the same call.
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        guard socketpair(AF_UNIX, Int32(type), 0, &pipe) == 0 else {
            let cause = Self.cause(errno)
            _ = Glibc.close(descriptor)
            throw .unreachable(path: path, cause: cause)
        }
        self.descriptor = descriptor
        wakeRead = pipe[0]
        wakeWrite = pipe[1]
    }

    deinit {
        for descriptor in [descriptor, wakeRead, wakeWrite] { _ = Glibc.close(descriptor) }
    }

    private static func cause(_ number: Int32) -> String { String(cString: strerror(number)) }

    private static func connect(_ descriptor: Int32, to path: String) throws(ClientError) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        // The last byte of the address stays zero.
        guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw .invalidPath(path)
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        var limit = timeval(tv_sec: Self.timeout, tv_usec: 0)
        _ = setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result != 0 else { return }
        switch errno {
        case ENOENT, ECONNREFUSED, ENOTDIR: throw .notRunning(path: path)
        case EACCES, EPERM: throw .permissionDenied(path: path)
        case EAGAIN, ETIMEDOUT: throw .unreachable(path: path, cause: "it accepts no connection")
        default: throw .unreachable(path: path, cause: cause(errno))
        }
    }

    /// Waits until the socket is ready, `wake` is called, or `time` has come. nil: without a time limit.
    borrowing func wait(toRead: Bool, toWrite: Bool, until time: ContinuousClock.Instant?) -> Readiness {
        let interest = (toRead ? Int16(POLLIN) : 0) | (toWrite ? Int16(POLLOUT) : 0)
        var polls = [
            pollfd(fd: descriptor, events: interest, revents: 0),
            pollfd(fd: wakeRead, events: Int16(POLLIN), revents: 0),
        ]
        // Rounded up: after the wait the time has come.
        let left = time.map { max(0, (ContinuousClock.now.duration(to: $0) / .milliseconds(1)).rounded(.up)) }
        guard poll(&polls, 2, left.map { Int32(min($0, 1e9)) } ?? -1) > 0 else { return Readiness() }
        if polls[1].revents != 0 {
            withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) {
                while read(wakeRead, $0.baseAddress, $0.count) > 0 {}
            }
        }
        // After an error or the end of the stream, reading says what has happened.
        let failed = Int16(POLLHUP | POLLERR | POLLNVAL)
        return Readiness(
            canRead: polls[0].revents & (Int16(POLLIN) | failed) != 0,
            canWrite: polls[0].revents & Int16(POLLOUT) != 0
        )
    }

    /// Ends the running `wait`, else the next one.
    borrowing func wake() {
        var byte: UInt8 = 0
        // When the pipe is full, the wait ends anyway.
        _ = Glibc.send(wakeWrite, &byte, 1, Int32(MSG_NOSIGNAL))
    }

    /// Shows the end to the other side at once. The descriptor stays open.
    borrowing func shutDown() { _ = shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Receives bytes. Returns their number, 0 at the end of the stream or after an error, nil when there are none now.
    borrowing func receive(into space: UnsafeMutableRawBufferPointer) -> Int? {
        let count = recv(descriptor, space.baseAddress, space.count, Int32(MSG_DONTWAIT))
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? nil : 0
    }

    /// Sends bytes. Returns how many were taken, 0 when there is no room now, nil when the connection has ended.
    borrowing func send(_ bytes: UnsafeRawBufferPointer) -> Int? {
        let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)
        let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, flags)
        if count >= 0 { return count }
        return errno == EAGAIN || errno == EINTR ? 0 : nil
    }
}

/// The paths at which badged listens.
public enum SocketPath {
    /// The socket of the system, which systemd or a badged started by root makes.
    public static let system = "/run/badged/badged.sock"

    /// `$BADGED_SOCKET` if it is set; `system` if it exists; else the socket of a badged that runs as this user:
    /// `$XDG_RUNTIME_DIR/badged/badged.sock`. Without that variable `system`.
    public static var standard: String {
        if let path = getenv("BADGED_SOCKET"), path[0] != 0 { return String(cString: path) }
        if access(system, F_OK) == 0 { return system }
        guard let directory = getenv("XDG_RUNTIME_DIR"), directory[0] != 0 else { return system }
        return String(cString: directory) + "/badged/badged.sock"
    }
}
