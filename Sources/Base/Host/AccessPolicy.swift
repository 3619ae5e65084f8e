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

/// Who may do what: the rules of `[access]` with names turned into numbers, once, when the configuration is read.
package struct AccessPolicy: Sendable, Equatable {
    private var users: [UInt32: Permissions] = [:]
    private var groups: [UInt32: Permissions] = [:]
    private var others: Permissions
    private var owner: UInt32

    /// What a client may do that no line of `[access]` speaks of.
    package static let defaultPermissions: Permissions = [.readers, .cards]

    /// `owner` is the daemon's own user, who may do everything, as root may. `warnings` gets a line for each name that
    /// the system does not know; its rule is left out.
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
                    warnings.append("[access] names the user '\(name)', whom this system does not know")
                }
            case .group(let name):
                if let id = names.group(name) {
                    groups[id, default: []].formUnion(rule.permissions)
                } else {
                    warnings.append("[access] names the group '\(name)', which this system does not know")
                }
            }
        }
    }

    /// The closest rule decides: the line of the user, else all lines of its groups together, else `default`.
    package func permissions(uid: UInt32, gid: UInt32, groups memberships: some Sequence<UInt32>) -> Permissions {
        if uid == 0 || uid == owner { return .all }
        if let own = users[uid] { return own }
        let shared = ([gid] + memberships).compactMap { groups[$0] }
        return shared.isEmpty ? others : shared.reduce(into: []) { $0.formUnion($1) }
    }
}

/// Turns names of users and groups into numbers; decimal numbers pass as they are.
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

    /// Lends a buffer that grows as long as the entry does not fit (a group may have thousands of members).
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
