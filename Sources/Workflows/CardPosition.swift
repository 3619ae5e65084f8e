// SPDX-License-Identifier: GPL-3.0-or-later

/// Counts losses of a card in the middle of PACE: a card that lies badly loses its field again and again.
struct CardPosition {
    /// Losses, and time since the second of them, after which the user is told.
    static let maximumLosses = 10
    static let maximumTime = Duration.seconds(4)

    private var losses = 0
    private var second: ContinuousClock.Instant?
    private let now: @Sendable () -> ContinuousClock.Instant

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) {
        self.now = now
    }

    private(set) var isBad = false

    mutating func lost() {
        losses += 1
        if losses == 2 { second = now() }
        isBad = losses >= Self.maximumLosses || second.map { now() - $0 > Self.maximumTime } ?? false
    }
}
