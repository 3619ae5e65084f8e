// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
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
    private var loads = 0
    private let names: NameService
    private let timeout: Duration
    /// Started with the first look-up.
    private var thread: ThreadQueue?
    /// The number of look-ups that have not returned.
    private var pending = 0

    /// The number of clients whose names are looked up at once. Further clients are decided without a look-up.
    static let maximumPending = 64

    /// `timeout` is how long a client waits for a look-up. After this time the unknown names limit the client.
    package init(_ policy: AccessPolicy, names: NameService = .system, timeout: Duration = .seconds(5)) {
        (self.policy, self.names, self.timeout) = (policy, names, timeout)
    }

    deinit { thread?.finish() }

    /// Replaces the rules. Their names are looked up on a thread; those that are not found in time stay unknown for now.
    ///
    /// A later call wins over an earlier one that still waits.
    /// - Returns: a line for the log for each unknown name.
    package func load(_ rules: [AccessRule], owner: UInt32? = nil) async -> [String] {
        loads += 1
        var warnings: [String] = []
        guard rules.contains(where: { $0.subject != .others }) else {
            policy = AccessPolicy(rules: rules, owner: owner, names: names, warnings: &warnings)
            return warnings
        }
        let (load, names) = (loads, names)
        let found = OneShot<(AccessPolicy, [String])?>()
        let isStarted = startThread("badged-names") {
            var warnings: [String] = []
            let policy = AccessPolicy(rules: rules, owner: owner, names: names, warnings: &warnings)
            found.fill((policy, warnings))
        }
        let result = isStarted ? await value(of: found) : nil
        guard load == loads else { return [] }
        if let (policy, warnings) = result {
            self.policy = policy
            return warnings
        }
        policy = AccessPolicy(rules: rules, owner: owner, names: .none, warnings: &warnings)
        return ["the name service does not answer, so every name in [access] is unknown for now"]
    }

    /// Waits for a look-up, but not longer than `timeout`.
    private func value<Value: Sendable>(of found: OneShot<Value?>) async -> Value? {
        let alarm = Loop.Alarm { found.fill(nil) }
        alarm.set(after: Int64(timeout / .milliseconds(1)))
        defer { alarm.cancel() }
        return await found.value(whenCancelled: nil)
    }

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
        guard let (resolved, permissions) = await value(of: found), generation == self.generation else {
            return policy.permissions(of: client)
        }
        if policy != resolved {
            policy = resolved
            self.generation = generation
        }
        return permissions
    }
}
