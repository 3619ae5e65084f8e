// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// One line of `[access]`.
package struct AccessRule: Sendable, Equatable {
    package enum Subject: Sendable, Equatable, Hashable {
        case user(String), group(String), others

        /// What the line begins with, such as `group:door-users`.
        package var key: String {
            switch self {
            case .user(let name): "user:\(name)"
            case .group(let name): "group:\(name)"
            case .others: "default"
            }
        }
    }
    package var subject: Subject
    package var permissions: Permissions

    package init(_ subject: Subject, _ permissions: Permissions) {
        self.subject = subject
        self.permissions = permissions
    }
}

/// The rules of `[access]`, with names resolved to ids.
///
/// A line whose name the system does not know still counts: it limits every client to which the name could belong.
package struct AccessPolicy: Sendable, Equatable {
    private var users: [UInt32: Permissions] = [:]
    private var groups: [UInt32: Permissions] = [:]
    private var others: Permissions
    private var owner: UInt32?
    /// The rules whose names the system does not know.
    private var unknown: [AccessRule] = []
    /// The rules for a user or group of another rule, once by name and once by number. What both grant is granted.
    private var repeated: [AccessRule] = []

    /// The permissions of a client that no line of `[access]` applies to.
    package static let defaultPermissions: Permissions = [.readers, .cards, .wallet, .agent]

    /// The ids of a client, as the kernel reports them.
    package struct Client: Sendable, Equatable {
        package let uid: UInt32
        /// Its group and its supplementary groups.
        package let gids: Set<UInt32>

        package init(uid: UInt32, gid: UInt32, groups: some Sequence<UInt32>) {
            self.uid = uid
            gids = Set(groups).union([gid])
        }
    }

    /// Resolves the rules. `owner` is a user who has all permissions, as root has; see `trustedOwner`.
    ///
    /// `warnings` gets one line for each unknown name, and for each second line of one user or group.
    package init(
        rules: [AccessRule],
        owner: UInt32? = nil,
        names: NameService = .system,
        warnings: inout [String]
    ) {
        self.owner = owner
        others = Self.defaultPermissions
        unknown = rules
        resolve(names)
        warnings += doubtful.map(\.warning)
    }

    /// The settings whose names the system does not know, such as `[access] user:NAME`, and those for a user or group that
    /// has a line already, with what that means.
    package var doubtful: [(setting: String, warning: String)] {
        repeated.map { rule in
            let setting = "[access] \(rule.subject.key)"
            return (
                setting, "\(setting) has another line, with its name or number: only what both lines grant is granted"
            )
        }
            + unknown.map { rule in
                let key = rule.subject.key
                let kind = key.prefix { $0 != ":" }
                let setting = "[access] \(key)"
                let meaning = "until it does, its line also limits clients whose user has no known name"
                return (setting, "\(setting) names no \(kind) of this computer: \(meaning)")
            }
    }

    /// Looks up the names that were unknown so far.
    private mutating func resolve(_ names: NameService) {
        let rules = unknown
        unknown = []
        for rule in rules {
            switch rule.subject {
            case .others: others = rule.permissions
            case .user(let name):
                add(rule, to: \.users, names.user(name))
            case .group(let name):
                add(rule, to: \.groups, names.group(name))
            }
        }
    }

    private mutating func add(
        _ rule: AccessRule,
        to lines: WritableKeyPath<AccessPolicy, [UInt32: Permissions]>,
        _ id: UInt32?
    ) {
        guard let id else { return unknown.append(rule) }
        if self[keyPath: lines][id] != nil { repeated.append(rule) }
        self[keyPath: lines][id, default: rule.permissions].formIntersection(rule.permissions)
    }

    /// Whether the groups of a user decide about the permissions.
    package func needsGroups(of uid: UInt32) -> Bool {
        uid != 0 && uid != owner && users[uid] == nil && !(groups.isEmpty && unknown.isEmpty)
    }

    /// Whether an unknown name may change the permissions of a client.
    package func isUndecided(_ client: Client) -> Bool {
        guard client.uid != 0, client.uid != owner, users[client.uid] == nil else { return false }
        return !unknown.isEmpty
    }

    /// Returns the user of the daemon if a person runs badged by hand: the user id is at least 1000, and systemd passes
    /// no socket. The result is nil for a service, because its other programs, such as badged-activation, have the same
    /// user.
    package static func trustedOwner(_ socket: ListeningSocket, user: UInt32 = geteuid()) -> UInt32? {
        socket.isFromSystemd || user < 1000 ? nil : user
    }

    /// Returns the permissions of a client.
    ///
    /// A line for the user decides alone. Otherwise all lines of its groups are combined. Otherwise `default` applies.
    /// A line with an unknown name takes away what it does not grant, if the name could mean the client.
    package func permissions(of client: Client, names: NameService = .none) -> Permissions {
        if client.uid == 0 || client.uid == owner { return .all }
        if let own = users[client.uid] { return own }
        let shared = client.gids.compactMap { groups[$0] }
        var result = shared.isEmpty ? others : shared.reduce(into: []) { $0.formUnion($1) }
        guard !unknown.isEmpty else { return result }
        let user = names.userName(client.uid)
        let groupNames = client.gids.map(names.groupName)
        // An id with a different name does not belong to the unknown name. A faulty name service may know the name of
        // an id, but not the id of that name.
        func couldMean(_ name: String, _ nameOfID: String?) -> Bool { nameOfID == nil || nameOfID == name }
        for rule in unknown {
            switch rule.subject {
            case .user(let name):
                if couldMean(name, user) { result.formIntersection(rule.permissions) }
            case .group(let name):
                // One more group would only add permissions to those of the known groups.
                if shared.isEmpty, groupNames.contains(where: { couldMean(name, $0) }) {
                    result.formIntersection(rule.permissions)
                }
            case .others: break
            }
        }
        return result
    }

    /// Looks up the unknown names again, and returns the permissions of a client. This may block.
    package mutating func permissions(of client: Client, lookingUp names: NameService) -> Permissions {
        resolve(names)
        return permissions(of: client, names: names)
    }
}

/// Translates names of users and groups to ids and back. Decimal numbers are ids already.
package struct NameService: Sendable {
    package var user: @Sendable (String) -> UInt32?
    package var group: @Sendable (String) -> UInt32?
    package var userName: @Sendable (UInt32) -> String?
    package var groupName: @Sendable (UInt32) -> String?
    /// All groups of a user; nil for an unknown user.
    package var groups: @Sendable (UInt32) -> [UInt32]?

    package init(
        user: @escaping @Sendable (String) -> UInt32?,
        group: @escaping @Sendable (String) -> UInt32?,
        userName: @escaping @Sendable (UInt32) -> String? = { _ in nil },
        groupName: @escaping @Sendable (UInt32) -> String? = { _ in nil },
        groups: @escaping @Sendable (UInt32) -> [UInt32]? = { _ in nil }
    ) {
        self.user = user
        self.group = group
        self.userName = userName
        self.groupName = groupName
        self.groups = groups
    }

    /// Knows no name.
    package static let none = NameService(user: { _ in nil }, group: { _ in nil })

    /// The C functions are getpwnam_r, getgrnam_r, getpwuid_r, getgrgid_r and getgrouplist. They may block.
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
        },
        userName: { id in
            lookUp { base, count in
                var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
                let code = getpwuid_r(id, &entry, base, count, &found)
                return (code, found.map { String(cString: $0.pointee.pw_name) })
            }
        },
        groupName: { id in
            lookUp { base, count in
                var (entry, found) = (Glibc.group(), UnsafeMutablePointer<Glibc.group>?.none)
                let code = getgrgid_r(id, &entry, base, count, &found)
                return (code, found.map { String(cString: $0.pointee.gr_name) })
            }
        },
        groups: { id in
            let user = lookUp { base, count in
                var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
                let code = getpwuid_r(id, &entry, base, count, &found)
                return (code, found.map { (name: String(cString: $0.pointee.pw_name), gid: $0.pointee.pw_gid) })
            }
            guard let user else { return nil }
            // NGROUPS_MAX of the kernel.
            var groups = [gid_t](repeating: 0, count: 65_536)
            var count = Int32(groups.count)
            guard getgrouplist(user.name, user.gid, &groups, &count) >= 0 else { return nil }
            return Array(groups.prefix(Int(count)))
        }
    )

    /// Knows only the groups of /etc/group. It does not wait for a directory service, and does not load its library.
    package static let localGroups = NameService(
        user: { _ in nil },
        group: { name in
            guard let content = try? INIFile.contents(of: "/etc/group") else { return nil }
            for line in String(decoding: content, as: UTF8.self).split(separator: "\n") {
                // name:password:id:members
                let fields = line.split(separator: ":", omittingEmptySubsequences: false)
                if fields.count == 4, fields[0] == name { return UInt32(fields[2]) }
            }
            return nil
        }
    )

    /// Repeats `call` with a larger buffer until the entry fits. A group may have thousands of members.
    private static func lookUp<Value>(_ call: (UnsafeMutablePointer<CChar>, Int) -> (Int32, Value?)) -> Value? {
        var size = 4096
        while size <= 4 << 20 {
            let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
            defer { buffer.deallocate() }
            let (code, value) = call(buffer, size)
            guard code == ERANGE else { return value }
            size *= 4
        }
        return nil
    }
}
