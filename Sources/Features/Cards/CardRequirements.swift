// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import ISO7816
package import Readers

/// What a workflow needs of a card and its reader, and how it begins to use the card.
@Loop package protocol CardRequirements {
    associatedtype Profile: CardProfile
    /// A card in use.
    associatedtype Card

    /// Why a card of the right kind cannot be used; nil when it can.
    func obstacle(of profile: Profile, in reader: ReaderDescription) -> CardObstacle?

    /// What is told of a card of another kind.
    var wrongKind: CardObstacle { get }

    /// Begins to use a card, for instance by selecting its application.
    /// - Throws: `CardError`. The card is tried twice before it is left alone.
    func open(_ lease: CardLease, _ profile: Profile) async throws(CardError) -> Card
}
