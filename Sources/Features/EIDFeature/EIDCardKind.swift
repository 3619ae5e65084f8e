// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import EID
package import ISO7816
package import Text

/// Recognises the eID card.
package struct EIDCardKind: CardKind {
    package func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        guard case .eid(let profile) = try await EIDCard.identify(on: channel) else { return nil }
        return EIDCardProfile(eid: profile)
    }
}

/// The members of an eID card in READER.
package struct EIDCardProfile: CardProfile {
    package let kind = "eid"

    package var eid: EIDProfile
    /// Whether the PUK has no uses left.
    package var isInoperative = false

    package var members: [JSON.Member] {
        [
            JSON.Member("retryCounter", .number(String(eid.status.retryCounter))),
            JSON.Member("deactivated", .bool(eid.status.deactivated)),
            JSON.Member("inoperative", .bool(isInoperative)),
        ]
    }

    package var isUsable: Bool { !eid.status.deactivated && !isInoperative }

    /// German identity cards and residence permits have both applications.
    package var mayBeDocument: Bool { true }

    /// Returns the same card with a new state of its PIN, as read from the card.
    func with(_ status: PINStatus) -> EIDCardProfile {
        var profile = self
        profile.eid.status = status
        // Remaining tries show that the PUK was accepted.
        if status.retryCounter > 0 { profile.isInoperative = false }
        return profile
    }
}

extension CardObstacle {
    static let noEIDCard = CardObstacle("noEIDCard") {
        "The card in reader '\($0)' is not an eID card: put in an eID card. If it is one, take it out and put it in again"
    }
    static let deactivated = CardObstacle("deactivated") {
        "The online identification function of the card in reader '\($0)' is deactivated: "
            + "use another card, or have the authority that issued it activate the function"
    }
    static let inoperative = CardObstacle("inoperative") {
        "The card in reader '\($0)' is inoperative because its PUK is used up: "
            + "use another card, or have the authority that issued it set a new PIN"
    }
    /// The service accepts only eIDs of other types.
    static let unacceptedType = CardObstacle("unacceptedType") {
        "The service does not accept the kind of eID in reader '\($0)': use another card"
    }
    /// What the service says of itself is longer than a reader with a keypad takes.
    static let longDescription = CardObstacle("longDescription") {
        "Reader '\($0)' cannot show the description of this service, which is too long: use a reader without a keypad"
    }
}
