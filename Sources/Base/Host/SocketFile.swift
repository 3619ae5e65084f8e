// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

extension ListeningSocket {
    /// Clients may use the socket when they are in this group.
    static let groupName = "badged"

    /// Makes the socket file: mode 0660 and group `badged`. Where that group is missing or is not ours to give, 0660
    /// for root (whose group is root alone), else 0600: the own group may have half of the computer in it.
    ///
    /// A file that a dead daemon left is taken over; one that somebody listens on never is.
    static func bind(to path: String, names: NameService = .system) throws(StartError) -> ListeningSocket {
        guard let address = UnixAddress(path: path) else {
            throw StartError(
                "the socket path \(path) has \(path.utf8.count) bytes",
                hint: "the kernel takes 1 to \(UnixAddress.longestPath); choose a shorter one with --socket"
            )
        }
        makeFolder(of: path)
        // Between `bind` and `listen`, and while a dead file is replaced, the path looks abandoned: one at a time.
        let lock = try SocketLock(for: path)
        defer { lock.release() }
        try removeStaleFile(path, address)

        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | closeOnExec | nonBlocking, 0)
        guard descriptor >= 0 else {
            throw StartError("cannot open a socket: \(errorText())", hint: "raise the limit of open files")
        }
        // The file is born with the mode of the socket: at no time can anyone connect who must not.
        fchmod(descriptor, 0o600)
        let code = address.withPointer { Glibc.bind(descriptor, $0, $1) }
        guard code == 0, let file = FileIdentity(path: path) else {
            let text = errorText()
            Glibc.close(descriptor)
            throw StartError(
                "cannot make the socket \(path): \(text)",
                hint: "check the folder, or choose another with --socket"
            )
        }
        let made = ListeningSocket(descriptor: descriptor, path: path, file: file)
        let isGiven = names.group(groupName).map { lchown(path, uid_t.max, $0) == 0 } ?? false
        if isGiven || getegid() == 0 { chmod(path, 0o660) }
        guard listen(descriptor, SOMAXCONN) == 0 else {
            throw StartError("cannot listen on \(path): \(errorText())", hint: "this is a fault of the system")
        }
        return made
    }

    /// The last folder only: a missing parent is a misspelt path.
    private static func makeFolder(of path: String) {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return }
        let folder = String(path[..<slash])
        guard mkdir(folder, 0o700) == 0 else { return }
        // Others must pass through to a socket in a system folder; a user's own stays closed.
        if geteuid() < 1000 { chmod(folder, 0o755) }
    }

    private static func removeStaleFile(_ path: String, _ address: UnixAddress) throws(StartError) {
        guard let file = FileIdentity(path: path) else { return }
        guard file.isSocket else {
            throw StartError(
                "\(path) is in the way and is no socket",
                hint: "move it, or choose another path with --socket"
            )
        }
        let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | closeOnExec | nonBlocking, 0)
        defer { Glibc.close(probe) }
        let code = address.withPointer { connect(probe, $0, $1) }
        if code == 0 || errno == EAGAIN { throw inUse(path, code == 0 ? listener(of: probe) : nil) }
        guard errno == ECONNREFUSED else {
            throw StartError(
                "cannot use the socket \(path): \(errorText())",
                hint: "choose another path with --socket"
            )
        }
        guard unlink(path) == 0 else {
            throw StartError(
                "cannot replace the abandoned socket \(path): \(errorText())",
                hint: "remove it, or choose another path with --socket"
            )
        }
        Log.info("replaced the abandoned socket \(path)")
    }

    private static func inUse(_ path: String, _ pid: Int32?) -> StartError {
        guard let pid, pid > 0 else {
            return StartError(
                "another program listens on \(path)",
                hint: "stop it, or choose another path with --socket"
            )
        }
        let name = (try? INIFile.contents(of: "/proc/\(pid)/comm")).flatMap { $0 }
            .map { String(decoding: $0, as: UTF8.self) }
            .map { String(INIFile.trim($0.prefix { $0 != "\n" })) }
        return StartError(
            "\(name ?? "another program") (process \(pid)) listens on \(path)",
            hint: pid == 1
                ? "systemd holds it: use systemctl start badged.service, or choose another path with --socket"
                : "stop it, or choose another path with --socket"
        )
    }

    /// The process that called `listen`.
    private static func listener(of probe: Int32) -> Int32? {
        var (pid, uid, gid) = (pid_t(0), uid_t(0), gid_t(0))
        return clinux_peer_credentials(probe, &pid, &uid, &gid) == 0 ? pid : nil
    }
}

let closeOnExec: Int32 = 0o2000000  // SOCK_CLOEXEC
let nonBlocking: Int32 = 0o4000  // SOCK_NONBLOCK

/// A locked file beside the socket, there while the socket is made.
private struct SocketLock {
    private let path: String
    private let descriptor: Int32

    init(for socket: String) throws(StartError) {
        path = socket + ".lock"
        while true {
            let descriptor = clinux_open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
            guard descriptor >= 0 else {
                throw StartError(
                    "cannot make the socket \(socket): \(errorText())",
                    hint:
                        "the folder must exist and the daemon's user must be allowed to write to it; or choose another with --socket"
                )
            }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                close(descriptor)
                throw StartError(
                    "another badged is starting at \(socket)",
                    hint: "wait for it, or choose another path with --socket"
                )
            }
            // Its last holder may have removed the file between our `open` and our `flock`.
            if let ours = FileIdentity(descriptor: descriptor), ours == FileIdentity(path: path) {
                self.descriptor = descriptor
                return
            }
            close(descriptor)
        }
    }

    func release() {
        unlink(path)
        close(descriptor)
    }
}
