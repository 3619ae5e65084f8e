// SPDX-License-Identifier: GPL-3.0-or-later

/// What the eID-Server of a service may have of the card's data: `sent` and `rights` of AUTH. docs/protocol/eid.md.
///
/// The secure channel of the eID-Server hides from badged which data an answer of the card contains. So badged knows
/// whether answers were sent, and that the card gave nothing beyond the granted rights.
struct SentData: Equatable {
    enum State: String {
        /// No answer of the card to a command of the service was sent.
        case none
        /// Answers were sent, but the eID-Server has not confirmed any of them.
        case possible
        /// The eID-Server has answered after it was sent answers of the card.
        case read
    }

    private(set) var state = State.none
    /// The names of the granted rights that reveal data; empty while `state` is `none`.
    private(set) var rights: [String] = []

    /// Records that answers of the card are sent from now on.
    mutating func sending(_ granted: Consent) {
        guard state == .none else { return }
        state = .possible
        rights = granted.revealingNames
    }

    /// Records that the eID-Server has answered them.
    mutating func confirmed() { state = .read }
}
