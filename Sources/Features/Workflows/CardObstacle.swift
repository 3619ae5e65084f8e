// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// Why a workflow keeps waiting although there is a card or a reader; told once each in INSERT_CARD.
package enum CardObstacle: Hashable, Sendable {
    case unknownCard
    case deactivated
    case inoperative
    /// Another session's workflow has the reader.
    case busy
    /// Another program holds the reader.
    case exclusive
    case mute
    case accessDenied
    case noExtendedLength
    /// The service takes eIDs of other kinds only.
    case unacceptedType
    /// The reader that the client named is not there.
    case unknownReader

    /// The obstacle behind a failed connection or identification; nil when the card is simply gone.
    package init?(_ error: CardError) {
        switch error {
        case .removed, .serviceUnavailable: return nil
        case .exclusive: self = .exclusive
        case .accessDenied: self = .accessDenied
        case .tooLong: self = .noExtendedLength
        case .reset, .mute, .other: self = .mute
        }
    }

    /// What happened and what to do next, for INSERT_CARD `error`.
    package func text(reader: String) -> String {
        switch self {
        case .unknownCard:
            "The card in reader '\(reader)' is not an eID card: take it out and put in an eID card"
        case .deactivated:
            "The online identification function of the card in reader '\(reader)' is deactivated: "
                + "use another card, or have the authority that issued it activate the function"
        case .inoperative:
            "The card in reader '\(reader)' is inoperative because its PUK is used up: "
                + "use another card, or have the authority that issued it set a new PIN"
        case .busy:
            "Reader '\(reader)' is busy in another client's workflow: wait for its end or use another reader"
        case .exclusive:
            "Another program holds reader '\(reader)' exclusively: close that program"
        case .mute:
            "The card in reader '\(reader)' does not answer: take it out and put it in again"
        case .accessDenied:
            "The PC/SC service refuses access to reader '\(reader)': see the advice of GET_HEALTH"
        case .noExtendedLength:
            "Reader '\(reader)' cannot carry extended length commands as this needs: use another reader"
        case .unacceptedType:
            "The service does not accept the kind of eID in reader '\(reader)': use another card"
        case .unknownReader:
            "There is no reader '\(reader)': plug it in, or name another one"
        }
    }
}
