// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
package import Keycard
package import Server

/// Recognises wallet cards, so that READER tells their state.
@Loop package final class WalletFeature: CardFeature {
    package let cardKinds: [any CardKind]

    /// - Parameters:
    ///   - pairings: the pairings with 3.x cards.
    ///   - trust: which 4.0 cards are genuine.
    package init(_ pairings: KeycardPairings, trust: KeycardTrust = KeycardTrust()) {
        cardKinds = [KeycardKind(pairings, trust: trust)]
    }

    package var commands: [CommandSpec] { [] }
}
