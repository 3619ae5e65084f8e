// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
package import Host
import Text

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
    private var thread: JobQueue?
    /// The users for whom a look-up has not returned. Each has one at a time, so that no user can delay the others.
    private var pending: Set<UInt32> = []
    /// The users for whom a look-up of the groups has not returned, and the clients that wait for it.
    private var pendingGroups: [UInt32: [OneShot<[UInt32]?>]] = [:]
    private let changes = Waiters()
    /// Whether the last thread could not be spawned, which is logged once.
    private var lacksThread = false

    /// The number of users whose names or groups are looked up at once. Further clients are decided without a look-up.
    static let maximumPending = 64

    /// `timeout` is how long a client waits for a look-up. After this time the unknown names limit the client.
    package init(_ policy: AccessPolicy, names: NameService = .system, timeout: Duration = .seconds(5)) {
        self.policy = policy
        self.names = names
        self.timeout = timeout
    }

    deinit { thread?.finish() }

    /// Replaces the rules. Their names are looked up on a thread; those that are not found in time stay unknown for
    /// now.
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
        let isStarted = spawn {
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
        return isStarted ? ["the name service does not answer, so every name in [access] is unknown for now"] : []
    }

    /// Starts a thread that looks up names.
    private func spawn(_ body: @escaping @Sendable () -> Void) -> Bool {
        note(isStarted: startThread("badged-names", body))
    }

    private func note(isStarted: Bool) -> Bool {
        if !isStarted, !lacksThread {
            Log.warning("cannot spawn a thread to look up users and groups, so names in [access] are unknown for now")
        }
        lacksThread = !isStarted
        return isStarted
    }

    /// Waits for a look-up, but not longer than `timeout`.
    private func value<Value: Sendable>(of found: OneShot<Value?>) async -> Value? {
        let alarm = Loop.Alarm { found.fill(nil) }
        alarm.set(after: Int64(timeout / .milliseconds(1)))
        defer { alarm.cancel() }
        return await found.value(whenCancelled: nil)
    }

    /// Returns the permissions of a user whose groups the kernel does not report. The groups come from the name
    /// service; a user whose groups do not arrive before its deadline has no permission.
    package func permissions(ofUser uid: UInt32) async -> Permissions {
        guard policy.needsGroups(of: uid) else {
            return policy.permissions(of: AccessPolicy.Client(uid: uid, gid: .max, groups: []))
        }
        guard let groups = await groups(ofUser: uid), let first = groups.first else { return [] }
        return await permissions(uid: uid, gid: first, groups: groups)
    }

    /// Looks up the groups of a user, together with the other clients of the user. The thread stays until the name service
    /// returns, so each user has one at most.
    private func groups(ofUser uid: UInt32) async -> [UInt32]? {
        if pendingGroups[uid] == nil {
            let names = names
            guard pendingGroups.count < Self.maximumPending,
                spawn({ [weak self] in
                    let groups = names.groups(uid)
                    Task { @Loop in self?.found(groups, ofUser: uid) }
                })
            else { return nil }
        }
        let found = OneShot<[UInt32]?>()
        // Those whose time is over have left.
        pendingGroups[uid] = (pendingGroups[uid] ?? []).filter { !$0.isFilled } + [found]
        return await value(of: found)
    }

    private func found(_ groups: [UInt32]?, ofUser uid: UInt32) {
        for client in pendingGroups.removeValue(forKey: uid) ?? [] { client.fill(groups) }
    }

    private func lookUpEnded(for uid: UInt32) {
        pending.remove(uid)
        changes.check()
    }

    /// Waits for the end of the look-up for another client of the user, but not longer than `timeout`.
    private func waitForLookUp(of uid: UInt32) async {
        var isLate = false
        let alarm = Loop.Alarm { [changes] in
            isLate = true
            changes.check()
        }
        alarm.set(after: Int64(timeout / .milliseconds(1)))
        defer { alarm.cancel() }
        await changes.wait { [unowned self] in isLate || !pending.contains(uid) }
    }

    /// Returns the permissions of a client. Suspends only while an unknown name may concern the client.
    package func permissions(uid: UInt32, gid: UInt32, groups: [UInt32]) async -> Permissions {
        let client = AccessPolicy.Client(uid: uid, gid: gid, groups: groups)
        if policy.isUndecided(client), pending.contains(uid) { await waitForLookUp(of: uid) }
        guard policy.isUndecided(client), !pending.contains(uid), pending.count < Self.maximumPending else {
            return policy.permissions(of: client)
        }
        if thread == nil { thread = JobQueue(thread: "badged-names") }
        guard note(isStarted: thread != nil), let thread else { return policy.permissions(of: client) }
        pending.insert(uid)
        let found = OneShot<(AccessPolicy, Permissions)?>()
        let (before, names, generation) = (policy, names, generation)
        thread.async { [weak self] in
            var policy = before
            let permissions = policy.permissions(of: client, lookingUp: names)
            found.fill((policy, permissions))
            Task { @Loop in self?.lookUpEnded(for: uid) }
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
