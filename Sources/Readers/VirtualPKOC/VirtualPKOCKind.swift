// SPDX-License-Identifier: GPL-3.0-or-later
package import Readers
package import ReadersVirtual
package import Text

/// The kind of the virtual PKOC card. docs/protocol/credentials.md, Virtual PKOC card.
package struct VirtualPKOCKind: VirtualCardKind {
    package let name = "pkoc"

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(VirtualReaderError) -> any VirtualCardDescription {
        guard simulator == nil else { throw .invalid("simulator is only for eID cards") }
        var description = VirtualPKOCDescription()
        description.options = try VirtualCardOptions(card: card)
        for (key, entry) in CardEntry("card", card).members {
            switch key {
            case "certificate": description.certificate = try entry.bytes()
            case "phone": description.isPhone = try entry.bool()
            default: try description.tap.take(key, entry)
            }
        }
        return description
    }
}

/// What a virtual PKOC card is made of.
package struct VirtualPKOCDescription: VirtualCardDescription {
    package var tap = VirtualTapOptions()
    /// The object 7F21; nil: a card without SE V2.
    package var certificate: [UInt8]?
    /// Whether the card signs once per activation, as a phone does.
    package var isPhone = false
    package var options = VirtualCardOptions()

    package init() {}

    package func makeCard() throws(VirtualReaderError) -> VirtualCard {
        let key = try tap.makeKey(label: "badged: key of virtual PKOC cards")
        return try VirtualCard(VirtualPKOCCard(self, key), options)
    }
}
