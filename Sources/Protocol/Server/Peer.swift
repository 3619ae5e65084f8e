// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux

/// The process at the other end of a connection, as the kernel reports it when the connection is accepted.
package struct Peer: Sendable {
    package let pid: Int32
    package let uid: UInt32
    package let gid: UInt32
    /// Supplementary groups.
    package let groups: [UInt32]

    /// The largest number of supplementary groups that are read.
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
