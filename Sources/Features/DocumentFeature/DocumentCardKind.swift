// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Document
package import ISO7816
import Readers
package import Text

/// Recognises electronic documents of ICAO 9303 that have no function of their own in badged, such as passports.
package struct DocumentCardKind: CardKind {
    package func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        try await DocumentOffer.recognize(on: channel).map(DocumentCardProfile.init)
    }
}

/// The members of a document in READER: how it can be opened, and nothing about its holder or its country.
package struct DocumentCardProfile: CardProfile {
    package let kind = "document"
    /// nil for a card of another kind, whose document is looked for when it is read.
    package let offer: DocumentOffer?

    package var members: [JSON.Member] {
        let access = (offer?.hasPACE == true ? ["pace"] : []) + (offer?.hasBAC == true ? ["bac"] : [])
        return [JSON.Member("access", .array(access.map { .string($0) }))]
    }

    package var isUsable: Bool { true }
    package var mayBeDocument: Bool { true }
}

/// The requirements of RUN_READ_DOCUMENT: any document, also on an eID card.
struct DocumentRequirements: CardRequirements {
    let wrongKind = CardObstacle("noDocument") {
        "The card in reader '\($0)' is not an electronic document: use a passport, an identity card or a residence permit. "
            + "If it is one, take it out and put it in again"
    }

    func profile(_ known: any CardProfile) -> DocumentCardProfile? {
        if let document = known as? DocumentCardProfile { return document }
        return known.mayBeDocument ? DocumentCardProfile(offer: nil) : nil
    }

    func obstacle(of profile: DocumentCardProfile, in reader: ReaderDescription) -> CardObstacle? { nil }

    /// Nothing is sent to a known document before the client has given the key.
    func open(_ lease: CardLease, _ profile: DocumentCardProfile) async throws(CardError) -> OpenDocument {
        if let offer = profile.offer { return OpenDocument(lease: lease, offer: offer) }
        let channel = RepeatingChannel(lease.connection)
        return OpenDocument(lease: lease, offer: try await DocumentOffer.recognize(on: channel))
    }
}

/// A card that a workflow uses.
struct OpenDocument {
    let lease: CardLease
    /// nil: the card has no application for documents.
    let offer: DocumentOffer?
}
