// SPDX-License-Identifier: GPL-3.0-or-later
import CTestSupport
import Glibc

@testable import Host

/// What a program would try after a break-in. The targets are made before the program is confined.
struct Attacks {
    struct Attack {
        let name: String
        /// The attack works for an unconfined program on every kernel.
        var isCertain = true
        let succeeds: () -> Bool
    }

    /// A listening Unix socket, as that of badged.
    private let socketPath: String
    private let filePath: String
    private let port: in_port_t
    /// Sockets without a peer, which a confined program does not have; they could only be made by tricks.
    private let (tcp, datagrams): (Int32, Int32)
    /// Another process of the same user.
    let victim: pid_t

    init() throws {
        var template = Array("/tmp/badged-attack-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Problem.system("mkdtemp") }
        let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        (socketPath, filePath) = (folder + "/badged.sock", folder + "/file")
        guard let address = UnixAddress(path: socketPath), let file = fopen(filePath, "w") else {
            throw Problem.system(folder)
        }
        fclose(file)
        for type in [SOCK_STREAM, SOCK_DGRAM] {
            let listener = socket(AF_UNIX, Int32(type.rawValue), 0)
            let path = type == SOCK_STREAM ? address : UnixAddress(path: socketPath + ".datagrams")
            guard path?.withPointer({ bind(listener, $0, $1) }) == 0 else { throw Problem.system("bind") }
            listen(listener, 100)
        }
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var (bound, size) = (Self.loopback(port: 0), socklen_t(MemoryLayout<sockaddr_in>.size))
        guard Self.withAddress(&bound, { bind(listener, $0, size) }) == 0, listen(listener, 100) == 0,
            Self.withAddress(&bound, { getsockname(listener, $0, &size) }) == 0
        else { throw Problem.system("listen") }
        port = bound.sin_port
        tcp = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        datagrams = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        // A confined process cannot remove its files, so the victim does it when the other end of its input is closed.
        var input: [Int32] = [-1, -1]
        guard pipe(&input) == 0, let id = Self.spawn("/bin/sh", "-c", "read x; rm -r '\(folder)'", input: input) else {
            throw Problem.system("/bin/sh")
        }
        close(input[0])
        victim = id
    }

    enum Problem: Error { case system(String) }

    // MARK: The attacks

    var all: [Attack] { sockets + files + processes + memory }

    private var sockets: [Attack] {
        [
            Attack(name: "connect to the socket of badged") {
                let peer = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(peer) }
                return UnixAddress(path: socketPath)?.withPointer { connect(peer, $0, $1) } == 0
            },
            Attack(name: "send a datagram to a Unix socket") {
                UnixAddress(path: socketPath + ".datagrams")?.withPointer { sendto(datagrams, "x", 1, 0, $0, $1) } == 1
            },
            Attack(name: "make a pair of datagram sockets") {
                var pair: [Int32] = [-1, -1]
                return socketpair(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0, &pair) == 0
            },
            Attack(name: "connect to a port") {
                let peer = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(peer) }
                var address = Self.loopback(port: port)
                return Self.withAddress(&address) { connect(peer, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) } == 0
            },
            Attack(name: "connect with MSG_FASTOPEN", isCertain: false) {
                var address = Self.loopback(port: port)
                let size = socklen_t(MemoryLayout<sockaddr_in>.size)
                // 0x20000000: MSG_FASTOPEN.
                return Self.withAddress(&address) { sendto(tcp, "x", 1, 0x2000_0000, $0, size) } == 1
            },
            Attack(name: "make a netlink socket for the network's settings") {
                isOpen(socket(AF_NETLINK, Int32(SOCK_RAW.rawValue), 0))
            },
            Attack(name: "make an io_uring", isCertain: false) { ctestsupport_io_uring() != 0 },
        ]
    }

    private var files: [Attack] {
        [
            Attack(name: "read a file") { isOpen(open(filePath, O_RDONLY)) },
            Attack(name: "read the list of users") { isOpen(open("/etc/passwd", O_RDONLY)) },
            Attack(name: "read the environment of a process") { isOpen(open("/proc/\(victim)/environ", O_RDONLY)) },
            Attack(name: "write to a file") { isOpen(open(filePath, O_WRONLY)) },
            Attack(name: "create a file") { isOpen(creat(filePath + ".new", 0o600)) && unlink(filePath + ".new") == 0 },
            Attack(name: "create a file in /dev", isCertain: access("/dev/shm", W_OK) == 0) {
                isOpen(creat("/dev/shm/badged-attack-\(getpid())", 0o600))
                    && unlink("/dev/shm/badged-attack-\(getpid())") == 0
            },
            Attack(name: "create a folder") { mkdir(filePath + ".d", 0o700) == 0 && rmdir(filePath + ".d") == 0 },
            Attack(name: "rename a file") {
                rename(filePath, filePath + ".2") == 0 && rename(filePath + ".2", filePath) == 0
            },
            Attack(name: "change the mode of a file") { chmod(filePath, 0o600) == 0 },
        ]
    }

    private var processes: [Attack] {
        [
            Attack(name: "start a program") { Self.spawn("/bin/true") != nil },
            Attack(name: "start a process") { ctestsupport_fork() != 0 },
            Attack(name: "become another program", isCertain: false) { ctestsupport_exec() != 0 },
            Attack(name: "send a signal") { kill(victim, SIGCONT) == 0 },
            Attack(name: "have the kernel send a signal") { ctestsupport_own(tcp, victim) != 0 },
            Attack(name: "trace a process") { ctestsupport_trace(victim) != 0 },
            Attack(name: "limit a process") { ctestsupport_limit(victim) != 0 },
            Attack(name: "make a namespace", isCertain: geteuid() == 0) { ctestsupport_unshare() != 0 },
        ]
    }

    private var memory: [Attack] {
        [
            Attack(name: "read the memory of a process", isCertain: false) { ctestsupport_read_memory(victim) != 0 },
            Attack(name: "make memory for code") {
                mmap(nil, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED
            },
            Attack(name: "turn data into code") {
                let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                return mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0
            },
            Attack(name: "make a file in memory") { ctestsupport_memory_file() != 0 },
        ]
    }

    // MARK: Tools

    private func isOpen(_ descriptor: Int32) -> Bool { descriptor >= 0 && close(descriptor) == 0 }

    private static func loopback(port: in_port_t) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func withAddress<R>(_ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>) -> R) -> R
    {
        withUnsafeMutablePointer(to: &address) { $0.withMemoryRebound(to: sockaddr.self, capacity: 1, body) }
    }

    /// Starts a program. Its standard input is the first end of the pipe; it does not get the second one.
    private static func spawn(_ words: String..., input: [Int32] = []) -> pid_t? {
        var (id, actions) = (pid_t(), posix_spawn_file_actions_t())
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let end = input.first { posix_spawn_file_actions_adddup2(&actions, end, 0) }
        ctestsupport_close_from(&actions, 3)
        let arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        return posix_spawn(&id, words[0], &actions, nil, arguments, [nil]) == 0 ? id : nil
    }
}
