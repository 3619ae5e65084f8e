// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

extension ListeningSocket {
    /// The group whose members may connect.
    static let groupName = "badged"

    /// Makes the socket file with mode 0660 and group `badged` of /etc/group, where systemd-sysusers writes it.
    ///
    /// Without that group, or without the right to assign it, the group stays. The mode is then 0660 for root, whose
    /// group has no other members. It is 0600 for other users, because their group may have many members.
    ///
    /// A socket file on which no process listens is replaced. If a process listens, this function throws. It also throws
    /// if the folder does not exist, because the path is then probably a typing error.
    static func bind(to path: String, names: NameService = .localGroups) throws(StartError) -> ListeningSocket {
        guard let address = UnixAddress(path: path) else {
            throw StartError(
                "the socket path \(path) has \(path.utf8.count) bytes",
                hint: "the kernel takes 1 to \(UnixAddress.longestPath); choose a shorter one with --socket"
            )
        }
        let folder = folder(of: path)
        guard access(folder, F_OK) == 0 || errno != ENOENT else {
            throw StartError(
                "the folder \(folder) of the socket does not exist",
                hint: "correct the path, or make the folder with mkdir"
            )
        }
        // Between `bind` and `listen`, and while an old file is replaced, the path looks unused. The lock admits one
        // process at a time.
        let lock = try SocketLock(for: path)
        defer { lock.release() }
        try removeStaleFile(path, address)

        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | closeOnExec | nonBlocking, 0)
        guard descriptor >= 0 else {
            throw StartError("cannot open a socket: \(errorText())", hint: "raise the limit of open files")
        }
        // Set the mode before `bind`, so that no other user can connect in between.
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
            throw StartError("cannot listen on \(path): \(errorText())", hint: "choose another path with --socket")
        }
        return made
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes the last folder of the path. Only for the usual path: the folder in it has the name of the daemon.
    static func makeFolder(of path: String) {
        let folder = folder(of: path)
        guard mkdir(folder, 0o700) == 0 else { return }
        // Other users must be able to reach a socket in a system folder. The folder of a user stays private.
        if geteuid() < 1000 { chmod(folder, 0o755) }
    }

    private static func removeStaleFile(_ path: String, _ address: UnixAddress) throws(StartError) {
        guard let file = FileIdentity(path: path) else { return }
        guard file.isSocket else {
            throw StartError(
                "\(path) exists and is not a socket",
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
                "cannot replace the unused socket file \(path): \(errorText())",
                hint: "remove it, or choose another path with --socket"
            )
        }
        Log.info("replaced the unused socket file \(path)")
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

    /// Returns the process that called `listen`.
    private static func listener(of probe: Int32) -> Int32? {
        var (pid, uid, gid) = (pid_t(0), uid_t(0), gid_t(0))
        return clinux_peer_credentials(probe, &pid, &uid, &gid) == 0 ? pid : nil
    }
}

let closeOnExec: Int32 = 0o2000000  // SOCK_CLOEXEC
let nonBlocking: Int32 = 0o4000  // SOCK_NONBLOCK

/// A locked file next to the socket file. It exists while the socket is made.
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
            // The previous owner may have removed the file between `open` and `flock`.
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
