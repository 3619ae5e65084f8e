// SPDX-License-Identifier: GPL-3.0-or-later
package import ReadersVirtual
package import Text

package typealias VirtualPKOCKind = VirtualTapKind<VirtualPKOCDescription>

/// What a virtual PKOC card is made of.
package struct VirtualPKOCDescription: VirtualTapDescription {
    package static let kind = "pkoc"
    package var tap = VirtualTapOptions()
    /// The object 7F21; nil: a card without SE V2.
    package var certificate: [UInt8]?
    /// Whether the card signs once per activation, as a phone does.
    package var isPhone = false
    package var options = VirtualCardOptions()

    package init() {}

    package mutating func take(_ name: String, _ entry: CardEntry) throws(Malformed) -> Bool {
        switch name {
        case "certificate": certificate = try entry.bytes()
        case "phone": isPhone = try entry.bool()
        default: return false
        }
        return true
    }

    package func makeCard() throws(Malformed) -> VirtualCard {
        let key = try tap.makeKey(label: "badged: key of virtual PKOC cards")
        return try VirtualCard(VirtualPKOCCard(self, key), options)
    }
}
