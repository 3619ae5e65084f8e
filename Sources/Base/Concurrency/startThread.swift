// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// Runs `body` on a thread of its own, which has a name (at most 15 bytes).
/// - Returns: false when the system has no thread left; then `body` does not run.
package func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
    final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void
        init(_ name: String, _ body: @escaping @Sendable () -> Void) { (self.name, self.body) = (name, body) }
    }
    let start = Unmanaged.passRetained(Start(name, body))
    var thread = pthread_t()
    let code = pthread_create(
        &thread,
        nil,
        { raw in
            guard let raw else { return nil }
            let start = Unmanaged<Start>.fromOpaque(raw).takeRetainedValue()
            clinux_set_thread_name(start.name)
            start.body()
            return nil
        },
        start.toOpaque()
    )
    guard code == 0 else {
        start.release()
        return false
    }
    pthread_detach(thread)
    return true
}
