// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host

/// Starts a program of badged with one descriptor, and reads its status at its end: Swift Testing waits for any child of
/// the tests, and one that nobody waits for keeps its thread busy for ever.
package func startReaped(_ path: String, with descriptor: Int32) {
    guard let process = ChildProcess.start(path, [], descriptors: [descriptor]) else { return }
    _ = startThread("wait") { waitpid(process, nil, 0) }
}
