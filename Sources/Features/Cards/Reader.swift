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
        case unusable(CardFailure)
        /// The card answers, but is of no known kind.
        case unknown
        case known(any CardProfile)
    }

    /// Something outside of the card that keeps it from being used, such as another program.
    struct Hindrance {
        let obstacle: CardObstacle
        /// Whether the driver reports the end. Otherwise the registry tries again while a workflow waits.
        let isWatched: Bool
        /// Whether it is time for the next attempt.
        var isDue = false
    }

    package let name: String
    package internal(set) var description: ReaderDescription
    package internal(set) var insertion: Insertion?
    /// The answer to reset of the card, as in ISO 7816-3 or PC/SC part 3.
    var answerToReset: [UInt8] = []
    package internal(set) var card = Card.none
    /// What the NDEF application has shown in this insertion; nil: nobody has selected it.
    package var ndef: NDEFContent?
    var hindrance: Hindrance?
    /// The workflow, device or reading that holds the reader.
    package internal(set) var owner: ObjectIdentifier?
    /// The place of the owner, if it is a workflow.
    var holder: CardQueue.Place?
    /// Whether the owner is a `CardReading`. It is short, so others wait for its end without a message.
    var isRead = false
    /// The name of the device to which the card is lent over the network.
    var borrower: String?
    /// The workflow whose SET_CARD has inserted the card. No other workflow takes the card.
    var supplier: ObjectIdentifier?
    /// The cards of SET_CARD that wait until the reader is free.
    var supplies: [Supply] = []
    let backend: any ReaderBackend
    var recognition: Task<Void, Never>?

    init(_ description: ReaderDescription, _ backend: any ReaderBackend) {
        self.name = description.name
        self.description = description
        self.backend = backend
    }

    /// Whether a workflow or another device holds the reader.
    var isLent: Bool { owner != nil && !isRead }

    /// Whether a workflow may insert a card into a virtual reader.
    func isFree(for workflow: ObjectIdentifier) -> Bool {
        insertion == nil && supplier == nil && (!isLent || owner == workflow)
    }

    /// Why no other workflow gets the card.
    var useObstacle: CardObstacle { borrower.map { .lent(to: $0) } ?? .busy }

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
        case .none: false
        // The registry cannot recognise a card that another program holds.
        case .recognizing: hindrance != nil
        case .unusable, .unknown, .known: true
        }
    }

    /// The kind of card that a feature has recognised; nil: none, or no card.
    var knownKind: String? {
        if case .known(let profile) = card { profile.kind } else { nil }
    }

    /// The kind of card for GET_METRICS; nil: there is none.
    var countedKind: String? {
        switch card {
        case .none: nil
        case .recognizing: showsCard ? "unknown" : nil
        case .unusable, .unknown: "unknown"
        case .known(let profile): profile.kind
        }
    }

    /// Whether an attempt to use the card is useless now.
    var isHindered: Bool { hindrance.map { !$0.isDue } ?? false }
}
