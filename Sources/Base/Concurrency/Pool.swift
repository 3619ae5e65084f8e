// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Dispatch
import Glibc
import Synchronization

/// The threads for what computes and has no thread of its own: as many as there are processors, started when there is
/// work for them, asleep in the kernel when there is none, and ended by `rest`.
package final class Pool: Sendable {
    private struct State {
        /// First come first served: the daemon has no work of different urgency.
        var work: [@Sendable () -> Void] = []
        var threads = 0
        /// Threads that wait, and that nobody has called yet.
        var idle = 0
        /// Of the threads that were called, how many to end. Which ones does not matter.
        var leaving = 0
    }

    private static let shared = Pool()

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let limit = max(2, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))

    private init() {}

    /// Runs a block that does not wait for anything.
    package static func run(_ block: @escaping @Sendable () -> Void) {
        shared.put(block)
    }

    /// Ends the threads that have nothing to do: each keeps a stack, free memory of malloc and random numbers of libcrypto
    /// for itself. New work starts new ones.
    package static func rest() {
        let count = shared.state.withLock { state in
            let count = state.idle
            state.leaving += count
            state.threads -= count
            state.idle = 0
            return count
        }
        for _ in 0..<count { shared.wake.signal() }
    }

    private enum Step { case nothing, wake, start }

    private func put(_ work: @escaping @Sendable () -> Void) {
        let step = state.withLock { state -> Step in
            state.work.append(work)
            if state.idle > 0 {
                state.idle -= 1
                return .wake
            }
            guard state.threads < limit else { return .nothing }
            state.threads += 1
            return .start
        }
        switch step {
        case .nothing: break
        case .wake: wake.signal()
        case .start: start()
        }
    }

    private func start() {
        let code = clinux_start_thread(
            { _ in
                clinux_set_thread_name("badged-pool")
                Pool.shared.run()
                return nil
            },
            nil
        )
        if code != 0 {
            // The threads there are do the work; the next piece of work tries again.
            state.withLock { $0.threads -= 1 }
        }
    }

    private func run() {
        while true {
            let work = state.withLock { state -> (@Sendable () -> Void)? in
                if state.work.isEmpty {
                    state.idle += 1
                    return nil
                }
                return state.work.removeFirst()
            }
            if let work {
                work()
            } else {
                wake.wait()
                if mayLeave() { return }
            }
        }
    }

    private func mayLeave() -> Bool {
        state.withLock { state in
            guard state.leaving > 0 else { return false }
            state.leaving -= 1
            return true
        }
    }
}
