// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
import Threads

/// Decides about the permissions of each client that connects, by the rules of `[access]`.
///
/// Names that the system did not know are looked up again for each client. The look-up has a thread of its own, because
/// a directory service may need minutes.
@Loop package final class AccessControl {
    /// The current rules; SIGHUP replaces them.
    package var policy: AccessPolicy { didSet { generation += 1 } }
    private var generation = 0
    private let names: NameService
    private let patience: Duration
    /// Started with the first look-up.
    private var thread: ThreadQueue?
    /// The number of look-ups that have not returned.
    private var pending = 0

    /// The number of clients whose names are looked up at once. Further clients are decided without a look-up.
    static let maximumPending = 64

    /// - Parameter patience: how long a client waits for the look-up. After it the unknown names limit the client.
    package init(_ policy: AccessPolicy, names: NameService = .system, patience: Duration = .seconds(5)) {
        (self.policy, self.names, self.patience) = (policy, names, patience)
    }

    deinit { thread?.finish() }

    /// Returns the permissions of a client. Suspends only while an unknown name may concern the client.
    package func permissions(uid: UInt32, gid: UInt32, groups: [UInt32]) async -> Permissions {
        let client = AccessPolicy.Client(uid: uid, gid: gid, groups: groups)
        guard policy.isUndecided(client), pending < Self.maximumPending else { return policy.permissions(of: client) }
        if thread == nil { thread = ThreadQueue(thread: "badged-names") {} }
        guard let thread else { return policy.permissions(of: client) }
        pending += 1
        let found = OneShot<(AccessPolicy, Permissions)?>()
        let (before, names, generation) = (policy, names, generation)
        thread.async { [weak self] in
            var policy = before
            let permissions = policy.permissions(of: client, lookingUp: names)
            found.fill((policy, permissions))
            Task { @Loop in self?.pending -= 1 }
        }
        let alarm = Loop.Alarm { found.fill(nil) }
        alarm.set(after: Int64(patience / .milliseconds(1)))
        let result = await found.value(whenCancelled: nil)
        alarm.cancel()
        guard let (resolved, permissions) = result, generation == self.generation else {
            return policy.permissions(of: client)
        }
        if policy != resolved {
            policy = resolved
            self.generation = generation
        }
        return permissions
    }
}
