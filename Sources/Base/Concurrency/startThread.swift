// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Threads

/// Starts a detached thread that runs `body`. Tools such as top show its name, at most 15 bytes of it.
/// - Returns: false when the system has no thread left; then `body` does not run.
package func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
    Threads.startThread {
        clinux_set_thread_name(name)
        body()
    }
}
