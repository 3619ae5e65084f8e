// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// The reason why a workflow still waits although there is a card or a reader. INSERT_CARD reports each one once.
///
/// A feature adds the obstacles of its kind of cards in an extension.
package struct CardObstacle: Hashable, Sendable {
    package let name: String
    /// What happened and what to do next, for INSERT_CARD `error`.
    package let text: @Sendable (_ reader: String) -> String

    package init(_ name: String, text: @escaping @Sendable (_ reader: String) -> String) {
        (self.name, self.text) = (name, text)
    }

    package static func == (left: CardObstacle, right: CardObstacle) -> Bool { left.name == right.name }

    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension CardObstacle {
    /// Makes the obstacle of a failed connection or recognition; nil if the card was removed.
    package init?(_ error: CardError) {
        switch error {
        case .removed, .serviceUnavailable: return nil
        case .exclusive: self = .exclusive
        case .accessDenied: self = .accessDenied
        case .tooLong: self = .noExtendedLength
        case .reset, .mute, .other: self = .mute
        }
    }

    /// Another session's workflow has the reader.
    package static let busy = CardObstacle("busy") {
        "Reader '\($0)' is busy in another client's workflow: wait for its end or use another reader"
    }
    /// Another program holds the reader.
    static let exclusive = CardObstacle("exclusive") {
        "Another program holds reader '\($0)' exclusively: close that program"
    }
    static let mute = CardObstacle("mute") {
        "The card in reader '\($0)' does not answer: take it out and put it in again"
    }
    static let accessDenied = CardObstacle("accessDenied") {
        "The PC/SC service refuses access to reader '\($0)': see the advice of GET_HEALTH"
    }
    package static let noExtendedLength = CardObstacle("noExtendedLength") {
        "Reader '\($0)' does not support extended length, which this workflow needs: use another reader"
    }
    /// There is no reader with the name from the client.
    static let unknownReader = CardObstacle("unknownReader") {
        "There is no reader '\($0)': plug it in, or name another one"
    }

    /// The reader has failed and is not there now. The driver gives the advice.
    static func failed(_ advice: String) -> CardObstacle { CardObstacle("failed") { "Reader '\($0)': \(advice)" } }

    /// Whether a new attempt is useless while the card stays in the reader.
    var isFinal: Bool { self == .exclusive || self == .accessDenied }
}
