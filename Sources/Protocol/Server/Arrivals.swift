// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// The clients that were accepted and are not served yet: one client of each user in turn, root first.
///
/// A user who connects again and again waits for others, and nobody else waits for more than one client of this user.
struct Arrivals {
    struct Client {
        let socket: Int32
        let peer: Peer
    }

    private var clients = UserQueue<Client>(isRootFirst: true)

    var isEmpty: Bool { clients.isEmpty }

    mutating func add(_ client: Client) { clients.add(client, of: client.peer.uid) }

    mutating func next() -> Client? { clients.next() }
}
