// SPDX-License-Identifier: GPL-3.0-or-later

/// The clients that were accepted and are not served yet: one client of each user in turn, root first.
///
/// A user who connects again and again waits for others, and nobody else waits for more than one client of this user.
struct Arrivals {
    struct Client {
        let socket: Int32
        let peer: Peer
    }

    /// In the order of their arrival.
    private var clients: [UInt32: ArraySlice<Client>] = [:]
    /// The users with clients that wait; the first is the next.
    private var users: [UInt32] = []

    var isEmpty: Bool { users.isEmpty }

    mutating func add(_ client: Client) {
        let uid = client.peer.uid
        if clients[uid] == nil { users.insert(uid, at: uid == 0 ? 0 : users.count) }
        clients[uid, default: []].append(client)
    }

    mutating func next() -> Client? {
        guard !users.isEmpty else { return nil }
        let uid = users.removeFirst()
        let client = clients[uid]?.popFirst()
        if clients[uid]?.isEmpty ?? true { clients[uid] = nil } else { users.append(uid) }
        return client
    }
}
