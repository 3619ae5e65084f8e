// SPDX-License-Identifier: GPL-3.0-or-later
import Readers
package import ReadersVirtual
package import Tags
package import Text

/// Tags that are known by their number. docs/protocol/credentials.md, Virtual tag.
package struct VirtualTagKind: VirtualCardKind {
    package let name = "tag"

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        guard simulator == nil else { throw Malformed("simulator is only for eID cards") }
        var description = VirtualTagDescription()
        description.options = try VirtualCardOptions(card: card)
        for (key, entry) in CardEntry("card", card).members {
            switch key {
            case "uid":
                description.uid = try entry.bytes()
                guard [4, 7, 8, 10].contains(description.uid.count) else {
                    throw entry.wrong("is not 4, 7, 8 or 10 bytes")
                }
            case "type":
                guard let type = entry.json?.string.flatMap(TagType.init(rawValue:)) else {
                    let types = TagType.allCases.map(\.rawValue).joined(separator: ", ")
                    throw entry.wrong("is not one of \(types)")
                }
                description.type = type
            case "ndef": description.message = try entry.bytes()
            default: break
            }
        }
        guard let message = description.message else { return description }
        switch description.type {
        case .mifareUltralight:
            guard message.count <= VirtualTag.longestType2Message else {
                throw Malformed("card.ndef is longer than \(VirtualTag.longestType2Message) bytes")
            }
        case .mifareDESFire, .ntag, .iso14443Layer4: break
        default: throw Malformed("card.ndef is only for mifareUltralight, mifareDESFire, ntag and iso14443-4")
        }
        return description
    }
}

/// What a virtual tag is made of.
package struct VirtualTagDescription: VirtualCardDescription {
    package var uid: [UInt8] = [0x04, 0xA1, 0xB2, 0xC3, 0xD4, 0xE5, 0xF6]
    package var type = TagType.mifareUltralight
    /// nil: the tag is not formatted for NDEF.
    package var message: [UInt8]?
    package var options = VirtualCardOptions()

    package init() {}

    package func makeCard() throws(Malformed) -> VirtualCard {
        try VirtualCard(VirtualTag(self), options)
    }
}
