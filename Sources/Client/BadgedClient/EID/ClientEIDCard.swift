// SPDX-License-Identifier: Apache-2.0
import Text

/// A German eID card in a reader.
public struct EIDCard: Sendable, Equatable {
    /// PIN tries left, 3 to 0. At 1 the card asks for the CAN before the PIN, at 0 for the PUK.
    public var retryCounter: Int
    /// Whether the online function is switched off.
    public var isDeactivated = false
    /// Whether the PUK is used up, so that a blocked PIN stays blocked.
    public var isInoperative = false
}

extension Card {
    /// The card as an eID card; nil for any other card.
    public var eid: EIDCard? {
        // Other servers of the protocol tell no kind.
        guard kind ?? "eid" == "eid", let retryCounter = members["retryCounter"]?.int else { return nil }
        return EIDCard(
            retryCounter: retryCounter,
            isDeactivated: members["deactivated"]?.bool ?? false,
            isInoperative: members["inoperative"]?.bool ?? false
        )
    }

    /// An eID card.
    public init(_ card: EIDCard) {
        self.init(members: [
            "kind": .string("eid"),
            "retryCounter": .number(String(card.retryCounter)),
            "deactivated": .bool(card.isDeactivated),
            "inoperative": .bool(card.isInoperative),
        ])
    }
}

/// The messages of the workflows with eID cards.
let eidMessages: [any NamedMessage.Type] = [
    AccessRights.self, ServiceCertificate.self, AuthenticationMessage.self, ChangePINMessage.self,
]
