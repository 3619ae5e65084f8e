// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Text

/// A kind of cards that a feature supports, such as the eID card.
package protocol CardKind: Sendable {
    /// Recognises a card of this kind without a secret, and returns what clients may know about the card.
    ///
    /// The registry tries one kind after the other. The result is nil if the card is of another kind.
    /// - Throws: `CardError` if the card did not answer.
    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)?
}

/// The known properties of one card of one kind.
package protocol CardProfile: Sendable {
    /// `kind` of `card` in READER, such as `eid`.
    static var kind: StaticString { get }
    /// The members of `card` other than `kind`.
    var members: [JSON.Member] { get }
    /// Whether any workflow can use the card. SET_CARD may replace a card that no workflow can use.
    var isUsable: Bool { get }
    /// Whether the card is reset after it was recognised.
    var needsReset: Bool { get }
}

extension CardProfile {
    package var needsReset: Bool { false }
}
