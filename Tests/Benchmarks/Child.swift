// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// A program that the bench has started. The bench ends it.
final class Child {
    let pid: pid_t
    let name: String
    /// The standard output of the program, with `hasOutput`.
    let output: Int32?
    private var isRunning = true

    /// Starts a program. `arguments` are without its name. The file `log` gets standard error and, unless `hasOutput`,
    /// standard output.
    init(_ program: String, _ arguments: [String], log: String, hasOutput: Bool = false) throws(BenchError) {
        name = String(program.split(separator: "/").last ?? "program")
        var pipes: [Int32] = [-1, -1]
        if hasOutput {
            guard pipe(&pipes) == 0 else { throw BenchError(call: "pipe") }
            clinux_set_cloexec(pipes[0])
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        if hasOutput {
            posix_spawn_file_actions_adddup2(&actions, pipes[1], 1)
            posix_spawn_file_actions_addclose(&actions, pipes[1])
        } else {
            posix_spawn_file_actions_adddup2(&actions, 2, 1)
        }
        var argv: [UnsafeMutablePointer<CChar>?] = ([program] + arguments).map { strdup($0) } + [nil]
        defer { for argument in argv { free(argument) } }
        var child: pid_t = 0
        let code = posix_spawn(&child, program, &actions, nil, &argv, environ)
        if hasOutput { close(pipes[1]) }
        guard code == 0 else {
            errno = code
            throw BenchError(call: "posix_spawn \(program)")
        }
        pid = child
        output = hasOutput ? pipes[0] : nil
    }

    deinit {
        if isRunning {
            kill(pid, SIGKILL)
            var status: Int32 = 0
            waitpid(pid, &status, 0)
        }
        if let output { close(output) }
    }

    func signal(_ number: Int32) { kill(pid, number) }

    /// Connects to the socket as soon as the program listens. Nothing reports that, so this tries every 20 µs.
    func connect(to socket: String) throws(BenchError) -> Client {
        var wait = timespec(tv_sec: 0, tv_nsec: 20_000)
        while true {
            if let client = try Client(socket) { return client }
            guard !hasEnded() else { throw BenchError("\(name) has ended; see its log") }
            nanosleep(&wait, nil)
        }
    }

    /// Ends the program by SIGTERM.
    /// - Returns: microseconds until it has ended.
    @discardableResult
    func terminate() throws(BenchError) -> Double {
        let start = monotonicNow()
        kill(pid, SIGTERM)
        var status: Int32 = 0
        var wait = timespec(tv_sec: 0, tv_nsec: 50_000)
        while waitpid(pid, &status, WNOHANG) == 0 {
            guard microseconds(since: start) < Double(Client.timeout) * 1e6 else {
                throw BenchError("\(name) does not end on SIGTERM")
            }
            nanosleep(&wait, nil)
        }
        isRunning = false
        let time = microseconds(since: start)
        guard status == 0 else { throw BenchError("\(name) ended with wait status \(status)") }
        return time
    }

    /// Whether the program has ended by itself.
    func hasEnded() -> Bool {
        guard isRunning else { return true }
        var status: Int32 = 0
        if waitpid(pid, &status, WNOHANG) == pid { isRunning = false }
        return !isRunning
    }
}
