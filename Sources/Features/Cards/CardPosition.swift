// SPDX-License-Identifier: GPL-3.0-or-later

/// A clock. Tests pass one of their own, so that they need not wait.
package typealias Now = @Sendable () -> ContinuousClock.Instant

/// Counts losses of a card in steps that need a steady field. A card that lies badly is lost again and again.
struct CardPosition {
    /// After so many losses, or so much time since the second one, the user is told.
    static let maximumLosses = 10
    static let maximumTime = Duration.seconds(4)

    private var losses = 0
    private var second: ContinuousClock.Instant?
    private let now: Now

    init(now: @escaping Now) {
        self.now = now
    }

    private(set) var isBad = false

    /// A step has succeeded, or the user has laid the card down again.
    mutating func reset() { self = CardPosition(now: now) }

    mutating func lost() {
        losses += 1
        if losses == 2 { second = now() }
        isBad = losses >= Self.maximumLosses || second.map { now() - $0 > Self.maximumTime } ?? false
    }
}
