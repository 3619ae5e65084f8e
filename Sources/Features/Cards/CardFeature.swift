// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Server

/// A feature that supports kinds of cards.
@Loop package protocol CardFeature: Feature {
    /// The kinds, in the order in which a card is tried.
    var cardKinds: [any CardKind] { get }
}
