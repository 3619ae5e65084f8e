// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Readers

/// A reader as clients see it, with the card in it and the workflow that holds it.
@Loop package final class Reader {
    package enum Card {
        case none
        /// The card is inserted and not recognised yet. Clients do not see a card so far.
        case recognizing
        /// The connection to the card fails, or the card does not answer.
        case unusable(CardObstacle)
        /// The card answers, but is of no known kind.
        case unknown
        case known(any CardProfile)
    }

    package let name: String
    package internal(set) var description: ReaderDescription
    package internal(set) var insertion: Insertion?
    /// The answer to reset of the card, as in ISO 7816-3 or PC/SC part 3.
    var answerToReset: [UInt8] = []
    package internal(set) var card = Card.none
    /// The workflow that holds the reader.
    package internal(set) var owner: ObjectIdentifier?
    /// The workflow whose SET_CARD has inserted the card. No other workflow takes the card.
    var supplier: ObjectIdentifier?
    let backend: any ReaderBackend
    var recognition: Task<Void, Never>?

    init(_ description: ReaderDescription, _ backend: any ReaderBackend) {
        (self.name, self.description, self.backend) = (description.name, description, backend)
    }

    /// Whether there is a card that no workflow can use.
    var hasUselessCard: Bool {
        switch card {
        case .none, .recognizing: false
        case .unusable, .unknown: true
        case .known(let profile): !profile.isUsable
        }
    }

    /// Whether clients see the card.
    var showsCard: Bool {
        switch card {
        case .none, .recognizing: false
        case .unusable, .unknown, .known: true
        }
    }
}
