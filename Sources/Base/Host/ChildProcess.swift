// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Text

/// Starts a program of badged as a child that inherits only the descriptors it is given.
package enum ChildProcess {
    /// The number of the first inherited descriptor; the others follow.
    package static let firstDescriptor: Int32 = 3

    /// Ends this process with exit code 2, unless `firstDescriptor` is the Unix socket that badged passes to the
    /// program.
    package static func requireSocket(of program: String, hint: String) {
        var (domain, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        if getsockopt(firstDescriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0, domain == AF_UNIX { return }
        refuse(program, hint: hint)
    }

    /// Ends this process when badged has closed its end of the socket, also if the other threads hang. They have `grace`
    /// milliseconds to end it themselves.
    /// - Returns: false if no thread can be started.
    package static func endWithSocket(grace: Int32) -> Bool {
        startThread {
            var end = pollfd(fd: firstDescriptor, events: 0, revents: 0)
            while poll(&end, 1, -1) < 1 {}
            poll(nil, 0, grace)
            _exit(0)
        }
    }

    /// Ends this process with exit code 2, because badged has not started it. `hint` says what to do instead.
    package static func refuse(_ program: String, hint: String) -> Never {
        Log.report(StartError("\(program) is started by badged only", hint: hint))
        exit(2)
    }

    /// Returns the path of a program of badged: in the folder of this program, or in `../libexec`.
    package static func path(of name: String) -> String? {
        var own = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &own, own.count)
        guard count > 0, count < own.count else { return nil }
        let folder = String(decoding: own[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
            .split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        return ["\(folder)/\(name)", "\(folder)/../libexec/\(name)"].first { access($0, X_OK) == 0 }
    }

    /// Returns the path of a program in the folders of `PATH`; nil: it is not installed.
    package static func installed(_ name: String) -> String? {
        let folders = getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin"
        return folders.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
    }

    /// Starts a program. The child inherits standard error.
    ///
    /// The caller does not wait for the end of the child. A caller that runs for long must ignore SIGCHLD, or wait for the
    /// child.
    /// - Parameters:
    ///   - path: the program.
    ///   - arguments: its arguments, without its name.
    ///   - standard: its standard input and output; nil: /dev/null.
    ///   - descriptors: the other descriptors that it inherits, from `firstDescriptor` on.
    /// - Returns: the process id; nil if the program cannot be started.
    package static func start(
        _ path: String,
        _ arguments: [String],
        standard: (input: Int32, output: Int32)? = nil,
        descriptors: [Int32] = []
    ) -> Int32? {
        // Move the descriptors above the target numbers first, so that none overwrites another.
        let inherited = descriptors + (standard.map { [$0.input, $0.output] } ?? [])
        let copies = inherited.map { fcntl($0, F_DUPFD_CLOEXEC, 64) }
        defer { for copy in copies where copy >= 0 { close(copy) } }
        guard copies.allSatisfy({ $0 >= 0 }) else { return nil }

        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        guard posix_spawn_file_actions_init(&actions) == 0 else { return nil }
        defer { posix_spawn_file_actions_destroy(&actions) }
        guard posix_spawnattr_init(&attributes) == 0 else { return nil }
        defer { posix_spawnattr_destroy(&attributes) }
        let ends = copies[descriptors.count...]
        if let input = ends.first, let output = ends.last {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
            posix_spawn_file_actions_adddup2(&actions, output, 1)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0)
            posix_spawn_file_actions_adddup2(&actions, 0, 1)
        }
        for (index, copy) in copies.prefix(descriptors.count).enumerated() {
            posix_spawn_file_actions_adddup2(&actions, copy, firstDescriptor + Int32(index))
        }
        // Libraries and tests open descriptors without FD_CLOEXEC; a child that inherits one would keep the connection
        // open.
        clinux_spawn_close_from(&actions, firstDescriptor + Int32(descriptors.count))
        // Unblock the signals that this process blocks for signalfd: they must end the child.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        sigaddset(&signals, SIGCHLD)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF))

        let texts = [path] + arguments
        var pointers = texts.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var pid: pid_t = 0
        return posix_spawn(&pid, path, &actions, &attributes, &pointers, environ) == 0 ? pid : nil
    }
}

/// A child that was started. It can be ended at any time: a later process with its id is never meant.
package final class Child: Sendable {
    package let id: Int32
    /// Of pidfd_open(2); -1: the child had ended already.
    private let descriptor: Int32

    /// Call this at once after the start.
    package init(_ id: Int32) {
        self.id = id
        descriptor = clinux_open_child(id)
    }

    /// Ends the child at once, if it still runs.
    package func end() { if descriptor >= 0 { clinux_kill_process(descriptor) } }

    deinit {
        guard descriptor >= 0 else { return }
        // Unless SIGCHLD is ignored, the child stays a zombie until its status is read.
        let isStarted = startThread { [descriptor] in
            _ = clinux_wait_for_child(descriptor)
            close(descriptor)
        }
        if !isStarted { close(descriptor) }
    }
}
