// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Threads

/// Starts a detached thread that runs `body`. Tools such as top show the first 15 bytes of its name.
/// - Returns: false if the system cannot start a thread; then `body` does not run.
package func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
    Threads.startThread {
        clinux_set_thread_name(name)
        body()
    }
}
