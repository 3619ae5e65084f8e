// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// When packets are fetched: each at once, while few come; seventy-five times a second, all that are there, while many do.
/// To wake up costs many times what it takes to understand an advertisement.
struct FetchPace {
    /// Between two fetches while many come, in milliseconds. Nobody at a door notices so much.
    static let pause: Milliseconds = 13
    /// So long it is counted how many come.
    private static let span: Milliseconds = 50
    /// Packets in that time from which on, and below which no more, it is worth while.
    private static let (many, few) = (8, 5)

    private(set) var isResting = false
    private var begin: Milliseconds = 0
    private var count = 0

    /// So many packets were fetched.
    mutating func fetched(_ packets: Int, at now: Milliseconds) {
        count += packets
        let time = now - begin
        guard time >= Self.span else { return }
        let limit = Milliseconds(isResting ? Self.few : Self.many)
        isResting = Milliseconds(count) * Self.span >= limit * time
        (begin, count) = (now, 0)
    }
}
