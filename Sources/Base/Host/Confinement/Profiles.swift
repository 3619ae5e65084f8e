// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

extension Confinement {
    /// badged-activation: accepts connections, reads and writes them, and passes one end of a socket pair to badged. It
    /// opens no file and makes no other socket.
    package static let browserPort = Confinement(
        calls: always + [
            SystemCall("accept4"),
            SystemCall(
                "socketpair",
                .argument(0, is: AF_UNIX),
                .argument(1, masked: ~UInt32(bitPattern: socketFlags), is: SOCK_STREAM.rawValue)
            ),
            // For SCM_RIGHTS. Sockets of this process that could take an address are connected already.
            SystemCall("sendmsg", .argument(2, within: sendFlags)),
            SystemCall("setsockopt", .argument(1, is: IPPROTO_TCP), .argument(2, is: TCP_NODELAY)),
            SystemCall("setsockopt", .argument(1, is: IPPROTO_TCP), .argument(2, is: TCP_CORK)),
            SystemCall("shutdown"),
        ]
    )

    /// badged-nfc: opens devices, and what libnfc, libusb and the C library read to find them.
    package static let nfcDevices = Confinement(
        calls: always + threads + files + deviceControls + [
            // libusb 1.0 listens to events of the kernel. Only the kernel and root can send them.
            SystemCall("socket", .argument(0, is: AF_NETLINK), .argument(2, is: netlinkEvents)),
            SystemCall("bind"),
            SystemCall("timerfd_create"), SystemCall("timerfd_settime"),
            // Signal 0 checks whether the owner of a lock file still runs.
            SystemCall("kill", .argument(1, is: 0)),
        ],
        readable: ["/sys", "/etc/nfc", "/etc/group", "/etc/nsswitch.conf", "/run/lock", "/run/udev"],
        writable: ["/dev"]
    )

    /// badged-network: looks up names, and connects to servers.
    package static let network = Confinement(
        // No Unix sockets, behind which are badged and programs of the user. So names are looked up in files and by DNS.
        calls: always + threads + files + connections + [
            // The C library asks the kernel for the addresses of this computer.
            SystemCall("socket", .argument(0, is: AF_NETLINK), .argument(2, is: routeMessages)),
            SystemCall("bind"), SystemCall("listen"), SystemCall("accept"), SystemCall("accept4"),
        ],
        readable: networkFiles
    )

    /// badged-remote: listens for announcements, and connects to devices or serves them. It looks up no names.
    package static let remoteReaders = Confinement(
        calls: always + threads + files + connections + [
            // The C library asks the kernel for the interfaces and addresses of this computer.
            SystemCall("socket", .argument(0, is: AF_NETLINK), .argument(2, is: routeMessages)),
            SystemCall("bind"), SystemCall("listen"), SystemCall("accept"), SystemCall("accept4"),
        ],
        readable: ["/etc/ssl/openssl.cnf", "/dev/null", "/dev/urandom"]
    )

    /// badged-mqtt: connects to badged and to its broker, and keeps its files in one folder.
    ///
    /// `readable` are files; others in their folders can be read as well, because files are exchanged by renaming.
    package static func broker(readable: [String], folder: String) -> Confinement {
        let changes = [
            "pwrite64", "ftruncate", "fsync", "fdatasync", "unlink", "rename", "mkdir", "getcwd",
            // Without a capability these only read.
            "adjtimex", "clock_adjtime",
        ]
        let ownControls = [F_SETLK, F_GETLK]
        let folders = readable.compactMap { path in path.lastIndex(of: "/").map { String(path[..<$0]) } }
        return Confinement(
            calls: always + threads + files + connections + changes.map { SystemCall($0) }
                + ownControls.map { SystemCall("fcntl", .argument(1, is: $0)) } + [
                    // badged, and services that look up names.
                    SystemCall(
                        "socket",
                        .argument(0, is: AF_UNIX),
                        .argument(1, masked: ~UInt32(bitPattern: socketFlags), is: SOCK_STREAM.rawValue)
                    )
                ],
            readable: networkFiles + folders.filter { !$0.isEmpty },
            owned: [folder]
        )
    }

    /// badged-osdp: connects to badged, has serial lines and ports, and keeps its files in one folder.
    package static func lines(readable: [String], folder: String) -> Confinement {
        // Datagrams are for systemd.
        let more = ["connect", "setsockopt", "sendto", "bind", "listen", "accept4", "fsync", "unlink", "rename"]
        let families = [AF_INET, AF_INET6].map { SystemCall("socket", .argument(0, is: $0)) }
        let folders = readable.compactMap { path in path.lastIndex(of: "/").map { String(path[..<$0]) } }
        return Confinement(
            calls: always + threads + files + deviceControls + families + more.map { SystemCall($0) }
                + ["socket", "socketpair"].map {
                    SystemCall(
                        $0,
                        .argument(0, is: AF_UNIX),
                        .argument(1, masked: ~UInt32(bitPattern: socketFlags), is: SOCK_STREAM.rawValue)
                    )
                } + [
                    SystemCall("ioctl", .argument(1, is: TIOCSRS485)),
                    // GPIO lines.
                    SystemCall("ioctl", .argument(1, masked: 0xFF00, is: 0xB400)),
                ],
            readable: ["/dev/urandom"] + folders.filter { !$0.isEmpty },
            writable: ["/dev"],
            owned: [folder]
        )
    }

    /// Connects to ports, and looks up names.
    private static var connections: [SystemCall] {
        [
            SystemCall("socket", .argument(0, is: AF_INET)), SystemCall("socket", .argument(0, is: AF_INET6)),
            SystemCall("connect"), SystemCall("setsockopt"), SystemCall("shutdown"),
            SystemCall(
                "socketpair",
                .argument(0, is: AF_UNIX),
                .argument(1, masked: ~UInt32(bitPattern: socketFlags), is: SOCK_STREAM.rawValue)
            ),
            SystemCall("sendmsg"), SystemCall("sendmmsg"), SystemCall("sendto"),
            // The number of an interface.
            SystemCall("ioctl", .argument(1, is: SIOCGIFINDEX)),
            SystemCall("ioctl", .argument(1, is: FIONREAD)), SystemCall("ioctl", .argument(1, is: FIONBIO)),
            // The C library loads modules of the name service, which are not writable.
            SystemCall("mmap", .argument(2, masked: PROT_EXEC | PROT_WRITE, is: PROT_EXEC)),
        ]
    }

    /// How names are looked up, certificates of authorities, the configuration of libssl, and libraries.
    private static let networkFiles =
        [
            "hosts", "host.conf", "resolv.conf", "nsswitch.conf", "gai.conf", "services", "protocols", "ld.so.cache",
            "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "pki",
        ].map { "/etc/" + $0 } + [
            "/lib", "/lib64", "/usr/lib", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
            "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/dev/null", "/dev/urandom",
        ]

    /// The calls that every program needs after its start, except those for opening files and starting threads.
    private static var always: [SystemCall] {
        let plain = [
            "read", "readv", "write", "writev", "close", "fstat", "newfstatat", "statx", "lseek", "pread64", "dup",
            "brk", "munmap", "mremap", "madvise", "futex", "membarrier", "rseq", "set_robust_list", "sched_yield",
            "sched_getaffinity", "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid",
            "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time", "getrandom",
            "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "uname", "sysinfo",
            "poll", "ppoll", "select", "pselect6", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",
            "epoll_pwait2", "eventfd2", "pipe2", "recvfrom", "recvmsg", "getsockname", "getpeername", "getsockopt",
            "exit",
            "exit_group",
        ]
        // No F_SETOWN, which lets the kernel send signals to other processes.
        let fileControls = [F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL]
        return plain.map { SystemCall($0) }
            + fileControls.map { SystemCall("fcntl", .argument(1, is: $0)) } + [
                // No executable memory.
                SystemCall("mmap", .argument(2, masked: PROT_EXEC, is: 0)),
                SystemCall("mprotect", .argument(2, masked: PROT_EXEC, is: 0)),
                // No destination address, and no MSG_FASTOPEN, which would connect.
                SystemCall("sendto", .argument(3, within: sendFlags), .isNull(4)),
                SystemCall("prctl", .argument(0, is: setThreadName)),
                SystemCall("getrlimit"), SystemCall("prlimit64", .argument(0, is: 0), .isNull(2)),
                // For abort() and raise(). Signals to other processes are not allowed.
                SystemCall("tgkill", .argument(0, is: getpid())),
            ]
    }

    /// Starts threads, not processes. clone3 has its flags in memory, where no filter sees them; the C library uses clone
    /// when clone3 does not exist.
    private static let threads = [
        SystemCall("clone", .argument(0, masked: threadFlags, is: threadFlags)),
        SystemCall("clone3", error: ENOSYS),
    ]

    /// Opens and finds files. Landlock decides which.
    private static let files = [
        "open", "openat", "getdents64", "readlink", "readlinkat", "access", "faccessat", "faccessat2", "stat", "lstat",
        "fadvise64", "fstatfs",
    ].map { SystemCall($0) }

    /// ioctl(2) of USB devices, serial lines, SPI and I²C. Not among them: TIOCSTI, which types into a terminal, and
    /// FIOSETOWN, which lets the kernel send signals.
    private static let deviceControls =
        ([
            TCGETS, TCSETS, TCSETSW, TCSETSF, TCFLSH, TIOCEXCL, TIOCNXCL, TIOCMGET, TIOCMSET, TIOCMBIS, TIOCMBIC,
            FIONREAD, FIONBIO,
        ].map { SystemCall("ioctl", .argument(1, is: $0)) }
            // 'U': usbdevfs, 'k': spidev, 7: i2c-dev.
            + [0x5500, 0x6B00, 0x0700].map { SystemCall("ioctl", .argument(1, masked: 0xFF00, is: $0)) })

    private static let sendFlags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE)
    private static let socketFlags = Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    /// CLONE_VM, CLONE_SIGHAND, CLONE_THREAD.
    private static let threadFlags = 0x0001_0900
    /// PR_SET_NAME.
    private static let setThreadName = 15
    /// NETLINK_ROUTE.
    private static let routeMessages = 0
    /// NETLINK_KOBJECT_UEVENT.
    private static let netlinkEvents = 15
}
