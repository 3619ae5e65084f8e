// SPDX-License-Identifier: GPL-3.0-or-later

/// Returns the current time. Tests pass their own function, so that they need not wait.
package typealias Now = @Sendable () -> ContinuousClock.Instant

/// Counts losses of a card in steps that need a steady field. A badly placed card is lost again and again.
struct CardPosition {
    /// The number of losses, or the time since the second one, after which the user is informed.
    static let maximumLosses = 10
    static let maximumTime = Duration.seconds(4)

    private var losses = 0
    private var second: ContinuousClock.Instant?
    private let now: Now

    init(now: @escaping Now) {
        self.now = now
    }

    private(set) var isBad = false

    /// Resets the count after a step has succeeded or the user has placed the card again.
    mutating func reset() { self = CardPosition(now: now) }

    mutating func lost() {
        losses += 1
        if losses == 2 { second = now() }
        isBad = losses >= Self.maximumLosses || second.map { now() - $0 > Self.maximumTime } ?? false
    }
}
