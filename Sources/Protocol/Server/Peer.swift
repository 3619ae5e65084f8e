// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import Host

/// The process at the other end of a connection, as the kernel reports it when the connection is accepted.
package struct Peer: Sendable {
    package let pid: Int32
    package let uid: UInt32
    package let gid: UInt32
    /// Supplementary groups.
    package let groups: [UInt32]

    /// The largest number of supplementary groups that the kernel allows: NGROUPS_MAX.
    private static let maximumGroups = 65_536

    init(pid: Int32, uid: UInt32, gid: UInt32, groups: [UInt32]) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
        self.groups = groups
    }

    /// Reads the credentials and all groups of the peer.
    /// - Throws: if one of them cannot be read. Without its groups, the rules for groups would not hold for the client.
    init(socket: Int32) throws(SystemError) {
        var (pid, uid, gid): (Int32, UInt32, UInt32) = (0, 0, 0)
        guard clinux_peer_credentials(socket, &pid, &uid, &gid) == 0 else { throw SystemError("SO_PEERCRED") }
        var groups = [UInt32](repeating: 0, count: 64)
        var count = clinux_peer_groups(socket, &groups, Int32(groups.count))
        while count < 0, errno == ERANGE, groups.count < Self.maximumGroups {
            groups = [UInt32](repeating: 0, count: groups.count * 4)
            count = clinux_peer_groups(socket, &groups, Int32(groups.count))
        }
        guard count >= 0 else { throw SystemError("SO_PEERGROUPS") }
        self.pid = pid
        self.uid = uid
        self.gid = gid
        self.groups = Array(groups.prefix(Int(count)))
    }
}
