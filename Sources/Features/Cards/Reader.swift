// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Readers

/// A reader as clients see it, with the card in it and the workflow that holds it.
@Loop package final class Reader {
    package enum Card {
        case none
        /// The card has been put in and is not recognised yet. Clients are told of no card so far.
        case recognizing
        /// The card cannot be reached, or does not answer.
        case unusable(CardObstacle)
        /// The card answers, and no kind knows it.
        case unknown
        case known(any CardProfile)
    }

    package let name: String
    package internal(set) var description: ReaderDescription
    package internal(set) var insertion: Insertion?
    /// Of the card in the reader, as ISO 7816-3 or PC/SC part 3 builds it.
    var answerToReset: [UInt8] = []
    package internal(set) var card = Card.none
    /// The workflow that holds the reader.
    package internal(set) var owner: ObjectIdentifier?
    /// The workflow whose SET_CARD has put the card in.
    var supplier: ObjectIdentifier?
    let backend: any ReaderBackend
    var recognition: Task<Void, Never>?

    init(_ description: ReaderDescription, _ backend: any ReaderBackend) {
        (self.name, self.description, self.backend) = (description.name, description, backend)
    }

    /// There is a card that no workflow can use.
    var hasUselessCard: Bool {
        switch card {
        case .none, .recognizing: false
        case .unusable, .unknown: true
        case .known(let profile): !profile.isUsable
        }
    }

    /// Clients are told of the card.
    var showsCard: Bool {
        switch card {
        case .none, .recognizing: false
        case .unusable, .unknown, .known: true
        }
    }
}
