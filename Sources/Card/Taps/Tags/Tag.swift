// SPDX-License-Identifier: GPL-3.0-or-later

/// A contactless card or tag that is known by its number only. The number is not secret, and anybody can copy it.
package struct Tag: Sendable, Equatable {
    /// UID of 4, 7 or 10 bytes; PUPI of 4 bytes (type B); 8 bytes of other standards.
    package let uid: [UInt8]
    package let type: TagType

    package init(uid: [UInt8], type: TagType) { (self.uid, self.type) = (uid, type) }

    /// Whether the UID is a new random number at each activation. ISO/IEC 14443-3, 6.5.4: single size, 08 first.
    package var isRandom: Bool { uid.count == 4 && uid.first == 0x08 }
}

/// What a reader says of a tag. The words are those of CREDENTIAL.
package enum TagType: String, Sendable, CaseIterable {
    case mifareClassic1K, mifareClassic4K, mifareMini, mifarePlus
    /// MIFARE Ultralight in all versions, and NTAG 2xx, which readers do not distinguish.
    case mifareUltralight
    case mifareDESFire
    /// NTAG 4xx.
    case ntag
    /// Any other card with ISO/IEC 14443-4, type A or B.
    case iso14443Layer4 = "iso14443-4"
    /// Without ISO/IEC 14443-4, and without a name.
    case iso14443A = "iso14443a"
    case iso14443B = "iso14443b"
    case iso15693
    case felica
}

extension TagType {
    /// Historical bytes before the names in the answer to reset of a storage card: an application identifier with the
    /// RID of the PC/SC Workgroup. PC/SC part 3, 3.1.3.2.3.2.
    private static let storagePrefix: [UInt8] = [0x80, 0x4F, 0x0C, 0xA0, 0x00, 0x00, 0x03, 0x06]
    /// Prefix, standard, name, and four bytes that are reserved.
    private static let storageCount = 15

    /// Reads the answer to reset that a PC/SC reader makes for a contactless card; nil: it is not of such a card.
    /// PC/SC part 3, 3.1.3.2.3.
    package init?(answerToReset: [UInt8]) {
        guard answerToReset.count >= 5, answerToReset.starts(with: [0x3B]), answerToReset[1] & 0xF0 == 0x80,
            answerToReset[2] == 0x80, answerToReset[3] == 0x01,
            answerToReset.count == 5 + Int(answerToReset[1] & 0x0F),
            answerToReset.dropFirst().reduce(0, ^) == 0
        else { return nil }
        let content = Array(answerToReset.dropFirst(4).dropLast())
        guard content.count == Self.storageCount, content.starts(with: Self.storagePrefix) else {
            self = .iso14443Layer4
            return
        }
        self.init(standard: content[8], name: UInt16(content[9]) << 8 | UInt16(content[10]))
    }

    /// The names of the supplemental document of PC/SC part 3.
    private init(standard: UInt8, name: UInt16) {
        switch name {
        case 0x0001: self = .mifareClassic1K
        case 0x0002: self = .mifareClassic4K
        case 0x0003, 0x003A, 0x003D: self = .mifareUltralight
        case 0x0026: self = .mifareMini
        case 0x0036...0x0039: self = .mifarePlus
        case 0x003B: self = .felica
        default:
            switch standard {
            case 0x05...0x08: self = .iso14443B
            case 0x09...0x0C: self = .iso15693
            case 0x11: self = .felica
            default: self = .iso14443A
            }
        }
    }

    /// Whether the answer to reset is that of a card that takes no APDUs.
    package var isStorage: Bool {
        switch self {
        case .iso14443Layer4, .mifareDESFire, .ntag: false
        case .mifareClassic1K, .mifareClassic4K, .mifareMini, .mifarePlus, .mifareUltralight, .iso14443A, .iso14443B,
            .iso15693, .felica:
            true
        }
    }

    /// The answer to reset of a storage card of type A or B by its SAK; nil: type B.
    package static func storageAnswerToReset(selectAnswer: UInt8?) -> [UInt8] {
        let (standard, name): (UInt8, UInt8) =
            switch selectAnswer {
            case nil: (0x07, 0x00)
            case 0x00: (0x03, 0x03)
            case 0x08, 0x88: (0x03, 0x01)
            case 0x18: (0x03, 0x02)
            case 0x09: (0x03, 0x26)
            case 0x10: (0x03, 0x38)
            case 0x11: (0x03, 0x39)
            default: (0x03, 0x00)
            }
        let checked = [0x80 | UInt8(storageCount), 0x80, 0x01] + storagePrefix + [standard, 0x00, name, 0, 0, 0, 0]
        return [0x3B] + checked + [checked.reduce(0, ^)]
    }
}
