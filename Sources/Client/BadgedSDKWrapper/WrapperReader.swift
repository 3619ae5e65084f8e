// SPDX-License-Identifier: Apache-2.0
import Text

/// A card reader: READER, an entry of READER_LIST, `reader` of the ENTER messages.
public struct Reader: Sendable, Equatable {
    public let name: String
    /// Whether `setCard` can put a card into the reader.
    public let insertable: Bool
    public let attached: Bool
    /// Whether PIN, CAN and PUK are typed on the reader. Then the app answers with nil.
    public let keypad: Bool
    public let card: Card?

    public init(name: String, insertable: Bool, attached: Bool, keypad: Bool, card: Card?) {
        self.name = name
        self.insertable = insertable
        self.attached = attached
        self.keypad = keypad
        self.card = card
    }

    /// Reads a reader; nil without a name. A reader that is gone has only a name.
    init?(_ json: JSON) {
        guard let name = json["name"]?.string else { return nil }
        self.init(
            name: name,
            insertable: json["insertable"]?.bool ?? false,
            attached: json["attached"]?.bool ?? false,
            keypad: json["keypad"]?.bool ?? false,
            card: json["card"].flatMap(Card.init)
        )
    }
}

/// A card in a reader. All members are nil for a card that is no eID card.
public struct Card: Sendable, Equatable {
    /// Whether the online function is switched off.
    public let deactivated: Bool?
    /// Whether the PUK is used up.
    public let inoperative: Bool?
    /// PIN tries left, 3 to 0. At 1 the card asks for the CAN first, at 0 for the PUK.
    public let pinRetryCounter: Int?

    public init(deactivated: Bool?, inoperative: Bool?, pinRetryCounter: Int?) {
        self.deactivated = deactivated
        self.inoperative = inoperative
        self.pinRetryCounter = pinRetryCounter
    }

    public func isUnknown() -> Bool { deactivated == nil && inoperative == nil && pinRetryCounter == nil }

    init?(_ json: JSON) {
        guard json.members != nil else { return nil }
        self.init(
            deactivated: json["deactivated"]?.bool,
            inoperative: json["inoperative"]?.bool,
            pinRetryCounter: json["retryCounter"]?.int
        )
    }
}
