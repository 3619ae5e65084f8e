// SPDX-License-Identifier: GPL-3.0-or-later
package import Server
package import Text

/// A reader as one client sees it: the members of READER, of an entry of READER_LIST, and of `reader` in ENTER
/// messages.
package struct ReaderState: Sendable, Equatable {
    var name: String
    /// The state of the reader; nil if there is no such reader. Then the message has no other member.
    var attached: Attached?

    struct Attached: Sendable, Equatable {
        var insertable: Bool
        var keypad: Bool
        /// The name of the driver, as in INFO.
        var driver: String
        /// Another device lends the reader over the network.
        var remote: Bool
        var card: Card
        /// Another session's workflow holds the reader.
        var busy: Bool
    }

    enum Card: Sendable, Equatable {
        case none
        /// The card is of no known kind: `{}` at level 3, `null` below.
        case unknown
        case known(kind: String, members: [JSON.Member])
    }

    package func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("name", name)
        object.member("attached", attached != nil)
        guard let attached else { return }
        object.member("insertable", attached.insertable)
        object.member("keypad", attached.keypad)
        object.member("driver", attached.driver)
        if attached.remote { object.member("remote", true) }
        if attached.busy { object.member("busy", true) }
        switch attached.card {
        case .none: object.member("card", JSON.null)
        case .unknown: object.member("card", level < .three ? JSON.null : .object([]))
        case .known(let kind, let members):
            object.member("card", .object([JSON.Member("kind", .string(kind))] + members))
        }
    }
}

struct ReaderMessage: Message {
    static let name: StaticString = "READER"
    let reader: ReaderState

    func write(to object: inout JSONWriter, _ level: APILevel) { reader.write(to: &object, level) }
}

struct ReaderListMessage: Message {
    static let name: StaticString = "READER_LIST"
    let readers: [ReaderState]

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.array(level == .one ? "reader" : "readers", readers) { array, reader in
            array.object { reader.write(to: &$0, level) }
        }
    }
}

/// INSERT_CARD. `error` says why the card in `reader` cannot be used.
struct InsertCardMessage: Message {
    static let name: StaticString = "INSERT_CARD"
    static let eventName = "INSERT_CARD"
    var error: Phrase?
    var reader: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        if let reader { object.member("reader", reader) }
    }
}
