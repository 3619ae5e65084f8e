// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// A program that the bench has started; it ends with the bench.
final class Child {
    let pid: pid_t
    let name: String
    /// Its standard output, where that was asked for.
    let output: Int32?
    private var isRunning = true

    /// Microseconds that an end on SIGTERM may take.
    private static let patience = 10_000_000.0

    /// Starts it; `arguments` are without its name, `log` is the file that takes standard error, and standard output
    /// unless `hasOutput`.
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

    /// SIGTERM, and waits for the end.
    /// - Returns: microseconds until it had ended.
    @discardableResult
    func terminate() throws(BenchError) -> Double {
        let start = monotonicNow()
        kill(pid, SIGTERM)
        var status: Int32 = 0
        var wait = timespec(tv_sec: 0, tv_nsec: 50_000)
        while waitpid(pid, &status, WNOHANG) == 0 {
            guard microseconds(since: start) < Self.patience else {
                throw BenchError("\(name) does not end on SIGTERM")
            }
            nanosleep(&wait, nil)
        }
        isRunning = false
        let time = microseconds(since: start)
        guard status == 0 else { throw BenchError("\(name) ended with wait status \(status)") }
        return time
    }

    /// Whether it has ended by itself.
    func hasEnded() -> Bool {
        guard isRunning else { return true }
        var status: Int32 = 0
        if waitpid(pid, &status, WNOHANG) == pid { isRunning = false }
        return !isRunning
    }
}
