// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import ReadersVirtual
package import Text

package typealias VirtualAliroKind = VirtualTapKind<VirtualAliroDescription>

/// What a virtual card with Aliro is made of.
package struct VirtualAliroDescription: VirtualTapDescription {
    package static let kind = "aliro"
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

    package mutating func take(_ name: String, _ entry: CardEntry) throws(Malformed) -> Bool {
        switch name {
        case "reader": reader = try entry.bytes(33)
        case "group": group = try entry.bytes(16)
        case "fast": isFast = try entry.bool()
        case "pkoc": hasPKOC = try entry.bool()
        default: return false
        }
        return true
    }

    package func makeCard() throws(Malformed) -> VirtualCard {
        let key = try tap.makeKey(label: "badged: key of virtual Aliro cards")
        var known: ECPublicKey?
        if let reader {
            guard let key = try? ECPublicKey(compressedPoint: reader, on: .secp256r1) else {
                throw Malformed("card.reader is not a compressed public key of P-256")
            }
            known = key
        }
        return try VirtualCard(VirtualAliroCard(self, key, known), options)
    }
}
