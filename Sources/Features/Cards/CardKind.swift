// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import ISO7816
package import Server
package import Text

/// A feature that supports kinds of cards.
@Loop package protocol CardFeature: Feature {
    /// The kinds, in the order in which a card is tried.
    var cardKinds: [any CardKind] { get }
}

/// A kind of cards that a feature supports, such as the eID card.
package protocol CardKind: Sendable {
    /// Whether the answer to reset alone says that a card is of this kind and of no other. Then no other kind is tried.
    func claims(answerToReset: [UInt8]) -> Bool

    /// Whether cards of other kinds look like one of this kind, so that this kind is tried after all others.
    var isForOthers: Bool { get }

    /// Returns what clients may know about a card of this kind.
    ///
    /// The registry tries one kind after the other, and tries again if the card is disturbed. So nothing here counts as
    /// a use of the card: no secret is sent, and nothing is signed. The result is nil if the card is of another kind.
    /// - Throws: `CardError` if the card did not answer.
    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)?
}

extension CardKind {
    package func claims(answerToReset: [UInt8]) -> Bool { false }
    package var isForOthers: Bool { false }
}

/// The known properties of one card of one kind.
package protocol CardProfile: Sendable {
    /// `kind` of `card` in READER, such as `eid`.
    var kind: String { get }
    /// The members of `card` other than `kind`.
    var members: [JSON.Member] { get }
    /// Whether any workflow can use the card. SET_CARD may replace a card that no workflow can use.
    var isUsable: Bool { get }
    /// Whether the card may be an electronic document, too, which is only looked for when a client wants to read it.
    var mayBeDocument: Bool { get }
    /// Whether the card may be a phone with mobile documents. Only a workflow that reads them may ask it.
    var mayBePhone: Bool { get }
}

extension CardProfile {
    package var mayBeDocument: Bool { false }
    package var mayBePhone: Bool { false }
}

/// A phone that has offered its mobile documents, to whoever has asked it. READER says no more of it.
package struct PhoneProfile: CardProfile {
    package let kind = "mdoc"
    package let members: [JSON.Member] = []
    package let isUsable = true
    package let mayBePhone = true

    package init() {}
}

/// What the application for NDEF messages of a card or phone has shown. A phone begins a handover when it is selected, so
/// it is selected once for each insertion, and what it has shown serves everybody.
package enum NDEFContent: Sendable, Equatable {
    /// There is no such application now, as on a phone that is locked.
    case none
    /// A phone offers to go on over a radio.
    case handover
    /// The message of a tag.
    case message([UInt8])
    /// The memory cannot be read.
    case unreadable
}
