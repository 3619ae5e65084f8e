// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Text

/// The reason why a workflow still waits although there is a card or a reader. INSERT_CARD reports each one once.
///
/// A feature adds the obstacles of its kind of cards in an extension.
package struct CardObstacle: Hashable, Sendable {
    package let name: String
    /// What happened and what to do next, for INSERT_CARD `error`.
    package let text: @Sendable (_ reader: String) -> Phrase

    package init(_ name: String, text: @escaping @Sendable (_ reader: String) -> Phrase) {
        self.name = name
        self.text = text
    }

    package static func == (left: CardObstacle, right: CardObstacle) -> Bool { left.name == right.name }

    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// The failure of a card or its reader. Only `CardVerdict` makes one, so nothing else can make a card unusable.
package struct CardFailure: Sendable {
    package let obstacle: CardObstacle

    fileprivate init(_ obstacle: CardObstacle) { self.obstacle = obstacle }
}

/// What a failed attempt to use a card means.
package enum CardVerdict: Sendable {
    /// The card or its reader has failed. The card is not used until its next insertion.
    case cardFailed(CardFailure)
    /// Something else is in the way, such as another program. The card may be usable later.
    case hindered(CardObstacle)
    case cardLeft
    /// The attempt was ended from this side.
    case ended

    package init(_ error: CardError) {
        self =
            switch error {
            case .mute, .other: .cardFailed(CardFailure(.mute))
            case .tooLong: .cardFailed(CardFailure(.noExtendedLength))
            case .exclusive, .reset: .hindered(.exclusive)
            case .accessDenied: .hindered(.accessDenied)
            case .noResources: .hindered(.noResources)
            case .removed, .serviceUnavailable: .cardLeft
            case .cancelled: .ended
            }
    }
}

extension CardObstacle {
    /// Another session's workflow has the reader.
    package static let busy = CardObstacle("busy") {
        "Reader '\($0)' is busy in another client's workflow: wait for its end or use another reader"
    }
    /// Another device uses the card over the network.
    static func lent(to device: String) -> CardObstacle {
        CardObstacle("lent to \(device)") {
            "Reader '\($0)' is busy: '\(device)' uses it over the network. End the use there, wait, or use another reader"
        }
    }
    /// Another program holds the reader, or the card in a transaction.
    static let exclusive = CardObstacle("exclusive") {
        "Another program holds the card in reader '\($0)': wait until it is done, or close that program"
    }
    static let mute = CardObstacle("mute") {
        "The card in reader '\($0)' does not answer: take it out and put it in again"
    }
    static let accessDenied = CardObstacle("accessDenied") {
        "The PC/SC service refuses access to reader '\($0)': see the advice of GET_HEALTH"
    }
    static let noResources = CardObstacle("noResources") {
        "badged has no thread or memory left for the card in reader '\($0)': "
            + "end other programs or clients; badged tries again"
    }
    package static let noExtendedLength = CardObstacle("noExtendedLength") {
        "Reader '\($0)' does not support extended length, which this workflow needs: use another reader"
    }
    /// There is no reader with the name from the client.
    static let unknownReader = CardObstacle("unknownReader") {
        "There is no reader '\($0)': plug it in, or name another one"
    }

    /// The reader has failed and is not attached now. The advice comes from the driver.
    static func failed(_ advice: Phrase) -> CardObstacle { CardObstacle("failed") { "Reader '\($0)': \(advice)" } }
}
