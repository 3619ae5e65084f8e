// SPDX-License-Identifier: GPL-3.0-or-later
package import Readers
package import Text

/// A kind of virtual card, such as the eID card.
///
/// A new kind needs one target with this type, and one line in each program that offers virtual cards.
package protocol VirtualCardKind: Sendable {
    /// The value of `card.kind` in SET_CARD. READER has the same `kind` when badged recognises the card.
    var name: String { get }

    /// Parses the objects `simulator` and `card` of SET_CARD. Without both it describes the default card of this kind.
    /// - Throws: `Malformed`, which names the entry and what is wrong with it.
    func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription
}

/// The description of a new virtual card.
package protocol VirtualCardDescription: CardDescription {
    /// Makes the card. May take the secrets out of the description.
    /// - Throws: `Malformed`, which names the entry and what is wrong with it.
    func makeCard() throws(Malformed) -> VirtualCard
}

/// A card of SET_CARD with its kind.
struct NamedCard: VirtualCardDescription {
    let kind: String
    /// Whether the card of this kind that the reader has already is meant, if there is one.
    let isKept: Bool
    let description: any VirtualCardDescription

    func makeCard() throws(Malformed) -> VirtualCard { try description.makeCard() }
}

/// The kinds of virtual cards that a program offers.
package struct VirtualCardKinds: Sendable {
    private let kinds: [any VirtualCardKind]

    /// The first kind is the default.
    package init(_ kinds: [any VirtualCardKind]) { self.kinds = kinds }

    /// The name of the default kind.
    var usual: String { kinds.first?.name ?? "" }

    /// Parses the objects `simulator` and `card` of SET_CARD. `card.kind` chooses the kind.
    /// - Throws: `Malformed`, which names the entry and what is wrong with it.
    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        try kind(card?["kind"]).describe(simulator: simulator, card: card)
    }

    /// Parses the same objects, of which `card.kept` chooses a card that was in the reader before.
    /// - Throws: `Malformed`, which names the entry and what is wrong with it.
    func name(simulator: JSON?, card: JSON?) throws(Malformed) -> NamedCard {
        let kept = CardEntry("card", card)["kept"]
        return NamedCard(
            kind: try kind(card?["kind"]).name,
            isKept: kept.json == nil ? false : try kept.bool(),
            description: try describe(simulator: simulator, card: card)
        )
    }

    /// Parses a document `{"simulator": {...}, "card": {...}}` with the objects of SET_CARD, both optional.
    /// - Throws: `Malformed`, which names the entry and what is wrong with it.
    package func describe(_ document: JSON) throws(Malformed) -> any VirtualCardDescription {
        guard let members = document.members else { throw Malformed("the document is not an object") }
        for key in ["simulator", "card"] where members.contains(where: { $0.key == key }) {
            guard document[key]?.members != nil else { throw Malformed("\(key) is not an object") }
        }
        return try describe(simulator: document["simulator"], card: document["card"])
    }

    private func kind(_ json: JSON?) throws(Malformed) -> any VirtualCardKind {
        let names = kinds.map(\.name).joined(separator: ", ")
        guard let json else {
            guard let kind = kinds.first else { throw Malformed("there are no virtual cards") }
            return kind
        }
        guard let kind = kinds.first(where: { .string($0.name) == json }) else {
            throw Malformed("card.kind is not one of \(names)")
        }
        return kind
    }
}
