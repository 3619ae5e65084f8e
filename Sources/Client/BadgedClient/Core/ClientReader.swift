// SPDX-License-Identifier: Apache-2.0
public import Text

/// A card reader: the message READER, an entry of READER_LIST, `reader` of a question.
///
/// READER comes when a reader or its card appears, changes or goes away, and as the answer to GET_READER.
public struct Reader: ServerMessage, NamedMessage {
    static let names = ["READER"]

    public var name: String
    /// false: there is no such reader (any more), and all other members have their defaults.
    public var isAttached: Bool
    /// Whether this is a virtual reader, into which `setCard` puts a card.
    public var isInsertable: Bool
    /// Whether the reader has a keypad. Then PIN, CAN and PUK are typed there and sent without a value.
    public var hasKeypad: Bool
    /// The driver of the reader, such as `pcsc`; nil: this badged does not say.
    public var driver: String?
    /// Whether another device, such as a phone, lends the reader over the network.
    public var isRemote: Bool
    /// Whether the workflow of another client uses the reader.
    public var isBusy: Bool
    /// The card in the reader; nil when there is none.
    public var card: Card?

    public init(
        name: String,
        isAttached: Bool = true,
        isInsertable: Bool = false,
        hasKeypad: Bool = false,
        driver: String? = nil,
        isRemote: Bool = false,
        isBusy: Bool = false,
        card: Card? = nil
    ) {
        self.driver = driver
        self.name = name
        self.isAttached = isAttached
        self.isInsertable = isInsertable
        self.hasKeypad = hasKeypad
        self.isRemote = isRemote
        self.isBusy = isBusy
        self.card = card
    }

    init(_ json: JSON) throws(Malformed) {
        name = try json.required("name", as: \.string)
        isAttached = json["attached"]?.bool ?? false
        isInsertable = json["insertable"]?.bool ?? false
        hasKeypad = json["keypad"]?.bool ?? false
        driver = json["driver"]?.string
        isRemote = json["remote"]?.bool ?? false
        isBusy = json["busy"]?.bool ?? false
        card = json["card"].flatMap(Card.init)
    }

    /// A reader inside another message; nil when it has no name.
    init?(entry json: JSON) { try? self.init(json) }
}

/// A card in a reader. Each feature reads its own kind of card from `members`, such as `Card.eid`.
public struct Card: Sendable, Equatable {
    /// What badged reports about the card, by name. Empty for a card that badged does not recognise; API levels below 3
    /// do not show such a card.
    public var members: [String: JSON]

    /// The kind of card, such as `eid`; nil for a card that badged does not recognise.
    public var kind: String? { members["kind"]?.string }

    public init(members: [String: JSON] = [:]) { self.members = members }

    init?(_ json: JSON) {
        guard let members = json.members else { return nil }
        self.init(members: Dictionary(members.map { ($0.key, $0.value) }) { $1 })
    }
}

/// All card readers, sorted by name: READER_LIST.
public struct ReaderList: ServerMessage, NamedMessage {
    static let names = ["READER_LIST"]

    public var readers: [Reader]

    public init(readers: [Reader]) { self.readers = readers }

    init(_ json: JSON) throws(Malformed) {
        // API level 1 has the list under `reader`.
        let member = json["readers"] == nil && json["reader"] != nil ? "reader" : "readers"
        self.init(readers: try json.required(member, as: \.array).compactMap(Reader.init(entry:)))
    }
}
