// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux

/// Who is at the other end of a connection, as the kernel says it at accept.
package struct Peer: Sendable {
    package let pid: Int32
    package let uid: UInt32
    package let gid: UInt32
    /// Supplementary groups.
    package let groups: [UInt32]

    /// Most supplementary groups that are looked at.
    private static let maximumGroups = 256

    init(socket: Int32) throws(PeerError) {
        var (pid, uid, gid): (Int32, UInt32, UInt32) = (0, 0, 0)
        guard clinux_peer_credentials(socket, &pid, &uid, &gid) == 0 else { throw PeerError() }
        var groups = [UInt32](repeating: 0, count: Self.maximumGroups)
        let count = clinux_peer_groups(socket, &groups, Int32(groups.count))
        (self.pid, self.uid, self.gid) = (pid, uid, gid)
        self.groups = count > 0 ? Array(groups.prefix(Int(count))) : []
    }

    struct PeerError: Error {}
}

/// What a client may do; fixed when it connects. docs/protocol.md, Permissions.
package struct Permissions: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// See readers and cards.
    package static let readers = Permissions(rawValue: 1 << 0)
    /// Run workflows on cards.
    package static let cards = Permissions(rawValue: 1 << 1)
    package static let scan = Permissions(rawValue: 1 << 2)
    package static let admin = Permissions(rawValue: 1 << 3)
    /// Have the registered user interface authenticate, for a browser: the door's own, in no configuration.
    package static let activate = Permissions(rawValue: 1 << 4)
    package static let all: Permissions = [.readers, .cards, .scan, .admin, .activate]
}
