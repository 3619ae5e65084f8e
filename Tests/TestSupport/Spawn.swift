// SPDX-License-Identifier: GPL-3.0-or-later
import CTestSupport
import Dispatch
import Glibc
import Synchronization
import Text

/// Starts programs for tests. The programs end with the test process, also when it is killed.
package enum Spawn {
    package struct Failure: Error { package let text: String }

    /// Starts a program without waiting for its end.
    /// - Parameters:
    ///   - arguments: the program's path and its arguments.
    ///   - descriptors: the program's descriptors and the test's descriptors for them; no others are inherited.
    ///   - files: the program's descriptors and the paths of the files to open for them.
    ///   - environment: the whole environment, except for the options of sanitizers.
    ///   - hasSession: whether the program leads a session; the first terminal that it opens then controls it.
    /// - Returns: the process id.
    /// - Throws: `Failure` when the program does not exist or cannot be started.
    package static func start(
        _ arguments: [String],
        descriptors: [Int32: Int32] = [:],
        files: [Int32: String] = [:],
        environment: [String: String] = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"],
        hasSession: Bool = false
    ) throws(Failure) -> Int32 {
        // The error of setpriv would not name the cause.
        guard access(arguments[0], X_OK) == 0 else { throw Failure(text: "\(arguments[0]) is not there") }
        // setpriv executes the program in the same process, so the process id stays.
        let words = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"] + arguments
        let settings = environment.merging(sanitizers) { own, _ in own }.map { "\($0)=\($1)" }
        let (id, code) = Parent.shared.run {
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            for (number, own) in descriptors { posix_spawn_file_actions_adddup2(&actions, own, number) }
            for (number, path) in files { posix_spawn_file_actions_addopen(&actions, number, path, O_RDWR, 0) }
            // epoll reports a socket until every copy is closed, also those that a program inherited.
            let last = max(2, descriptors.keys.max() ?? 0, files.keys.max() ?? 0)
            ctestsupport_close_from(&actions, last + 1)
            var attributes = posix_spawnattr_t()
            posix_spawnattr_init(&attributes)
            defer { posix_spawnattr_destroy(&attributes) }
            // The program must not inherit the signals that the test runner ignores or blocks.
            var (none, all) = (sigset_t(), sigset_t())
            sigemptyset(&none)
            sigfillset(&all)
            posix_spawnattr_setsigmask(&attributes, &none)
            posix_spawnattr_setsigdefault(&attributes, &all)
            // The Glibc module does not export POSIX_SPAWN_SETSID.
            let setsid: Int32 = hasSession ? 0x80 : 0
            posix_spawnattr_setflags(&attributes, Int16(setsid | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
            let argv = words.map { strdup($0) } + [nil]
            let envp = settings.map { strdup($0) } + [nil]
            defer { for text in argv + envp { free(text) } }
            var id = pid_t()
            let code = posix_spawn(&id, words[0], &actions, &attributes, argv, envp)
            return (id, code)
        }
        guard code == 0 else { throw Failure(text: "\(arguments[0]): \(String(cString: strerror(code)))") }
        return id
    }

    /// Whether the tests and their programs are built with a sanitizer, which maps terabytes of shadow memory.
    package static let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

    /// The sanitizer options of the test process, which the program inherits.
    private static let sanitizers: [String: String] = {
        let names = ["ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"]
        let pairs = names.compactMap { name in getenv(name).map { (name, String(cString: $0)) } }
        return Dictionary(uniqueKeysWithValues: pairs)
    }()

    /// The thread that starts all programs, one after the other. The kernel sends a program its parent-death signal
    /// when the thread that started it ends, so this thread never ends. Starting one program at a time also keeps
    /// programs from inheriting each other's pipes.
    private final class Parent: Sendable {
        static let shared = Parent()

        private let body = Mutex<(@Sendable () -> (pid_t, Int32))?>(nil)
        private let result = Mutex<(pid_t, Int32)>((0, 0))
        private let turn = DispatchSemaphore(value: 1)
        private let isGiven = DispatchSemaphore(value: 0)
        private let isDone = DispatchSemaphore(value: 0)

        private init() {
            var thread = pthread_t()
            let start: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { _ in
                while true { Parent.shared.step() }
            }
            pthread_create(&thread, nil, start, nil)
        }

        private func step() {
            isGiven.wait()
            guard let body = body.withLock({ $0 }) else { return }
            let result = body()
            self.result.withLock { $0 = result }
            isDone.signal()
        }

        func run(_ body: @escaping @Sendable () -> (pid_t, Int32)) -> (pid_t, Int32) {
            turn.wait()
            defer { turn.signal() }
            self.body.withLock { $0 = body }
            isGiven.signal()
            isDone.wait()
            return result.withLock { $0 }
        }
    }
}
