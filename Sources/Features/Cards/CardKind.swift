// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Text

/// A kind of cards that a feature knows, such as the eID card.
package protocol CardKind: Sendable {
    /// Finds out whether the card is of this kind, and what is told of it before anything is asked. No secret is involved.
    ///
    /// The registry asks one kind after the other; nil lets the next one try.
    /// - Throws: `CardError` when the card gave no answer at all.
    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)?
}

/// What is known of one card of one kind.
package protocol CardProfile: Sendable {
    /// `kind` of `card` in READER, such as `eid`.
    static var kind: StaticString { get }
    /// The members of `card` beside `kind`.
    var members: [JSON.Member] { get }
    /// Whether any workflow can use the card. One that is of no use makes room for another card of SET_CARD.
    var isUsable: Bool { get }
}
