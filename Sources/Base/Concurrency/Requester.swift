// SPDX-License-Identifier: GPL-3.0-or-later

/// The user for whom the current task works. Tasks that it starts work for the same user.
package enum Requester {
    /// nil: the daemon itself, or a client whose user the kernel does not report.
    @TaskLocal package static var uid: UInt32?

    /// The share of this user in the pool. Tasks do not inherit it: each that works for a user names it.
    package static var share: any TaskExecutor { Pool.share(of: uid) }
}
