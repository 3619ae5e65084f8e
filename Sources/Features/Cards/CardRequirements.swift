// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import ISO7816
package import Readers
package import Text

/// The requirements of a workflow for a card and its reader, and the first step of its use.
@Loop package protocol CardRequirements {
    associatedtype Profile: CardProfile
    /// A card in use.
    associatedtype Card

    /// Returns what the workflow needs to know of a card; nil for a card of another kind.
    func profile(_ known: any CardProfile) -> Profile?

    /// Returns why a card of the right kind cannot be used; nil if the card can be used.
    func obstacle(of profile: Profile, in reader: ReaderDescription) -> CardObstacle?

    /// Returns what the workflow needs to know of a card that is of no known kind; nil: it cannot use such a card.
    func profileOfUnknown(in reader: Reader) -> Profile?

    /// Returns why this insertion cannot be used, whatever the card is; nil if it can.
    func obstacle(of insertion: Insertion, in reader: Reader) -> CardObstacle?

    /// What INSERT_CARD says when a card is asked for that was there before.
    var reminder: Phrase? { get }

    /// The obstacle that is reported for a card of another kind.
    var wrongKind: CardObstacle { get }

    /// Begins to use a card, for instance by selecting its application.
    /// - Throws: `CardError`. After two failures of the card it is not used until its next insertion.
    func open(_ lease: CardLease, _ profile: Profile) async throws(CardError) -> Card
}

extension CardRequirements {
    package func profile(_ known: any CardProfile) -> Profile? { known as? Profile }
    package func profileOfUnknown(in reader: Reader) -> Profile? { nil }
    package func obstacle(of insertion: Insertion, in reader: Reader) -> CardObstacle? { nil }
    package var reminder: Phrase? { nil }
}
