// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// One line of `[access]`.
package struct AccessRule: Sendable, Equatable {
    package enum Subject: Sendable, Equatable, Hashable { case user(String), group(String), others }
    package var subject: Subject
    package var permissions: Permissions

    package init(_ subject: Subject, _ permissions: Permissions) {
        (self.subject, self.permissions) = (subject, permissions)
    }
}

/// The rules of `[access]`, with names resolved to ids once, when the configuration is read.
package struct AccessPolicy: Sendable, Equatable {
    private var users: [UInt32: Permissions] = [:]
    private var groups: [UInt32: Permissions] = [:]
    private var others: Permissions
    private var owner: UInt32

    /// The permissions of a client that no line of `[access]` applies to.
    package static let defaultPermissions: Permissions = [.readers, .cards]

    /// Resolves the rules. `owner` is the user of the daemon, who has all permissions, as root has.
    ///
    /// `warnings` gets one line for each unknown name; its rule is ignored.
    package init(
        rules: [AccessRule],
        owner: UInt32 = geteuid(),
        names: NameService = .system,
        warnings: inout [String]
    ) {
        self.owner = owner
        others = Self.defaultPermissions
        for rule in rules {
            switch rule.subject {
            case .others: others = rule.permissions
            case .user(let name):
                if let id = names.user(name) {
                    users[id] = rule.permissions
                } else {
                    warnings.append("[access] names the user '\(name)', which is unknown; the line is ignored")
                }
            case .group(let name):
                if let id = names.group(name) {
                    groups[id, default: []].formUnion(rule.permissions)
                } else {
                    warnings.append("[access] names the group '\(name)', which is unknown; the line is ignored")
                }
            }
        }
    }

    /// Returns the permissions of a client.
    ///
    /// A line for the user decides alone. Otherwise all lines of its groups are combined. Otherwise `default` applies.
    package func permissions(uid: UInt32, gid: UInt32, groups memberships: some Sequence<UInt32>) -> Permissions {
        if uid == 0 || uid == owner { return .all }
        if let own = users[uid] { return own }
        let shared = ([gid] + memberships).compactMap { groups[$0] }
        return shared.isEmpty ? others : shared.reduce(into: []) { $0.formUnion($1) }
    }
}

/// Resolves names of users and groups to ids. Decimal numbers are ids already.
package struct NameService: Sendable {
    package var user: @Sendable (String) -> UInt32?
    package var group: @Sendable (String) -> UInt32?

    package init(user: @escaping @Sendable (String) -> UInt32?, group: @escaping @Sendable (String) -> UInt32?) {
        (self.user, self.group) = (user, group)
    }

    /// The C functions are getpwnam_r and getgrnam_r.
    package static let system = NameService(
        user: { name in
            if let number = UInt32(name) { return number }
            return lookUp { base, count in
                var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
                let code = getpwnam_r(name, &entry, base, count, &found)
                return (code, found?.pointee.pw_uid)
            }
        },
        group: { name in
            if let number = UInt32(name) { return number }
            return lookUp { base, count in
                var (entry, found) = (Glibc.group(), UnsafeMutablePointer<Glibc.group>?.none)
                let code = getgrnam_r(name, &entry, base, count, &found)
                return (code, found?.pointee.gr_gid)
            }
        }
    )

    /// Repeats `call` with a larger buffer until the entry fits. A group may have thousands of members.
    private static func lookUp(_ call: (UnsafeMutablePointer<CChar>, Int) -> (Int32, UInt32?)) -> UInt32? {
        var size = 4096
        while size <= 4 << 20 {
            let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
            defer { buffer.deallocate() }
            let (code, id) = call(buffer, size)
            guard code == ERANGE else { return id }
            size *= 4
        }
        return nil
    }
}
