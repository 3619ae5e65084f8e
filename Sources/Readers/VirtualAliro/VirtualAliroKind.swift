// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Readers
package import ReadersVirtual
package import Text

/// The kind of the virtual card with Aliro. docs/protocol/credentials.md, Virtual card with Aliro.
package struct VirtualAliroKind: VirtualCardKind {
    package let name = "aliro"

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(VirtualReaderError) -> any VirtualCardDescription {
        guard simulator == nil else { throw .invalid("simulator is only for eID cards") }
        var description = VirtualAliroDescription()
        description.options = try VirtualCardOptions(card: card)
        for (key, entry) in CardEntry("card", card).members {
            switch key {
            case "reader": description.reader = try entry.bytes(33)
            case "group": description.group = try entry.bytes(16)
            case "fast": description.isFast = try entry.bool()
            case "pkoc": description.hasPKOC = try entry.bool()
            default: try description.tap.take(key, entry)
            }
        }
        return description
    }
}

/// What a virtual card with Aliro is made of.
package struct VirtualAliroDescription: VirtualCardDescription {
    package var tap = VirtualTapOptions()
    /// The compressed public key of the readers that the card knows; nil: it knows none, and refuses all of them.
    package var reader: [UInt8]?
    /// The group of these readers; nil: any.
    package var group: [UInt8]?
    /// Whether the card does the fast phase with readers that have read it before.
    package var isFast = true
    /// Whether the card has PKOC with the same key, too, as a phone may have.
    package var hasPKOC = false
    package var options = VirtualCardOptions()

    package init() {}

    package func makeCard() throws(VirtualReaderError) -> VirtualCard {
        let key = try tap.makeKey(label: "badged: key of virtual Aliro cards")
        var known: ECPublicKey?
        if let reader {
            guard let key = try? ECPublicKey(compressedPoint: reader, on: .secp256r1) else {
                throw .invalid("card.reader is not a compressed public key of P-256")
            }
            known = key
        }
        return try VirtualCard(VirtualAliroCard(self, key, known), options)
    }
}
