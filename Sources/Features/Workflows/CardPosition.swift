// SPDX-License-Identifier: GPL-3.0-or-later

/// A clock, so that a test need not wait.
package typealias Now = @Sendable () -> ContinuousClock.Instant

/// Counts losses of a card in the middle of PACE: a card that lies badly loses its field again and again.
struct CardPosition {
    /// Losses, and time since the second of them, after which the user is told.
    static let maximumLosses = 10
    static let maximumTime = Duration.seconds(4)

    private var losses = 0
    private var second: ContinuousClock.Instant?
    private let now: Now

    init(now: @escaping Now) {
        self.now = now
    }

    private(set) var isBad = false

    /// Another outcome, or the user, says that the card lies well.
    mutating func reset() { self = CardPosition(now: now) }

    mutating func lost() {
        losses += 1
        if losses == 2 { second = now() }
        isBad = losses >= Self.maximumLosses || second.map { now() - $0 > Self.maximumTime } ?? false
    }
}
