// SPDX-License-Identifier: Apache-2.0
import Text

/// A Keycard in a reader: a card with the keys of wallets.
public struct Keycard: Sendable, Equatable {
    /// The version of its applet, such as `3.1`; nil for a 3.x card that is new.
    public var version: String?
    /// Whether the card has a PIN and a PUK.
    public var isInitialised: Bool
    /// The name of the keys on the card, 64 hexadecimal digits; nil if there are none.
    public var keyUID: String?
    /// PIN tries left; nil if badged cannot know them.
    public var pinTries: Int?
    /// PUK tries left; nil if badged cannot know them.
    public var pukTries: Int?
    /// Whether the computer of badged is paired with the card; nil if the card needs no pairing.
    public var isPaired: Bool?
    /// Whether badged trusts the authority of the card, or the card itself; nil if the card shows no certificate yet.
    public var isTrusted: Bool?
    /// Whether badged supports the version of the card. It uses no card of another version.
    public var isSupported = true
    /// Pairing slots of a 3.x card that are used, and that are free; nil for other cards.
    public var usedSlots: Int?
    public var freeSlots: Int?
}

extension Card {
    /// The card as a Keycard; nil for any other card.
    public var keycard: Keycard? {
        guard kind == "keycard", let isInitialised = members["initialised"]?.bool else { return nil }
        return Keycard(
            version: members["version"]?.string,
            isInitialised: isInitialised,
            keyUID: members["keyUID"]?.string,
            pinTries: members["pinTries"]?.int,
            pukTries: members["pukTries"]?.int,
            isPaired: members["paired"]?.bool,
            isTrusted: members["trusted"]?.bool,
            isSupported: members["supported"]?.bool ?? true,
            usedSlots: members["usedSlots"]?.int,
            freeSlots: members["freeSlots"]?.int
        )
    }
}
