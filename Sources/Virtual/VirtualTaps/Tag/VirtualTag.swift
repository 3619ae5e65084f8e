// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
package import ReadersVirtual
package import Taps
package import Text

/// A tag in software, with the part of the reader that answers the commands of class FF.
final class VirtualTag: VirtualCardSoftware {
    private let description: VirtualTagDescription
    /// The pages of a tag of type 2.
    private let memory: [UInt8]
    private var selectedFile: [UInt8]?
    private var isSelected = false
    private var reads = 0

    /// The data area has at most 2040 bytes: the message, its object, and the end.
    static let longestType2Message = 2040 - 5
    private static let pageBytes = 4

    init(_ description: VirtualTagDescription) {
        self.description = description
        memory = Self.type2Memory(description.uid, description.message)
    }

    var historicalBytes: [UInt8] {
        switch description.type {
        // The one historical byte of DESFire; see its data sheet, 8.2.
        case .mifareDESFire: [0x80]
        case .ntag, .iso14443Layer4: Array("TAG".utf8)
        case .mifareClassic1K: Self.storage(0x08)
        case .mifareClassic4K: Self.storage(0x18)
        case .mifareMini: Self.storage(0x09)
        case .mifarePlus: Self.storage(0x10)
        case .mifareUltralight: Self.storage(0x00)
        case .iso14443A: Self.storage(0x40)
        case .iso14443B: Self.storage(nil)
        case .iso15693: Self.storage(0x40, standard: 0x0B)
        case .felica: Self.storage(0x40, standard: 0x11)
        }
    }

    private static func storage(_ selectAnswer: UInt8?, standard: UInt8? = nil) -> [UInt8] {
        var bytes = Array(TagType.storageAnswerToReset(selectAnswer: selectAnswer).dropFirst(4).dropLast())
        if let standard { bytes[8] = standard }
        return bytes
    }

    var counters: [JSON.Member] { [.init("reads", .number(String(reads)))] }

    func reset() { (selectedFile, isSelected) = (nil, false) }

    func process(_ command: [UInt8]) -> [UInt8] {
        do throws(RefusedCommand) {
            guard let command = CommandAPDU(bytes: command) else { throw .wrongLength }
            if command.cla == 0x90, command.ins == 0x60, let version { return version + [0x91, 0xAF] }
            return try answer(to: command) + [0x90, 0x00]
        } catch {
            return [error.status.sw1, error.status.sw2]
        }
    }

    private func answer(to command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        switch (command.cla, command.ins) {
        case (0xFF, 0xCA):
            guard command.p1 == 0, command.p2 == 0 else { throw RefusedCommand(0x6A81) }
            reads += 1
            return description.uid
        case (0xFF, 0xB0): return try readPages(command)
        case _ where description.type.isStorage: throw .wrongInstruction
        case (0x00, 0xA4): return try select(command)
        case (0x00, 0xB0): return try readFile(command)
        default: throw .wrongInstruction
        }
    }

    // MARK: Type 2

    private static func type2Memory(_ uid: [UInt8], _ message: [UInt8]?) -> [UInt8] {
        // Three pages with the number and locks, which nobody reads here.
        var memory = Array((uid + [UInt8](repeating: 0, count: 12)).prefix(12))
        guard let message else { return memory + [UInt8](repeating: 0, count: 52) }
        var area: [UInt8] = [0x03]
        area +=
            message.count < 0xFF
            ? [UInt8(message.count)]
            : [0xFF, UInt8(truncatingIfNeeded: message.count >> 8), UInt8(truncatingIfNeeded: message.count)]
        area += message + [0xFE]
        area += [UInt8](repeating: 0, count: (8 - area.count % 8) % 8)
        memory += [0xE1, 0x10, UInt8(clamping: area.count / 8), 0x00]
        return memory + area
    }

    /// READ BINARY: four pages. Behind the last page the first one comes again.
    private func readPages(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard description.type == .mifareUltralight else { throw RefusedCommand(0x6A81) }
        let start = Int(command.p2) * Self.pageBytes
        guard command.p1 == 0, start < memory.count else { throw .noApplication }
        return (0..<min(command.le ?? 0, 16)).map { memory[(start + $0) % memory.count] }
    }

    // MARK: Type 4

    /// The first part of the answer to GetVersion: NXP, and the family of the chip.
    private var version: [UInt8]? {
        switch description.type {
        case .mifareDESFire: [0x04, 0x01, 0x01, 0x01, 0x00, 0x1A, 0x05]
        case .ntag: [0x04, 0x04, 0x02, 0x30, 0x00, 0x11, 0x05]
        default: nil
        }
    }

    private func select(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        if command.p1 == 0x04 {
            isSelected = command.data == [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01] && description.message != nil
            selectedFile = nil
            guard isSelected else { throw .noApplication }
            return []
        }
        guard isSelected, command.p1 == 0x00, let message = description.message else { throw .wrongState }
        let size = message.count + 2
        switch command.data {
        case [0xE1, 0x03]:
            selectedFile =
                [0x00, 0x0F, 0x20, 0x00, 0x3B, 0x00, 0x34, 0x04, 0x06, 0xE1, 0x04]
                + [UInt8(truncatingIfNeeded: size >> 8), UInt8(truncatingIfNeeded: size), 0x00, 0xFF]
        case [0xE1, 0x04]:
            let count = message.count
            selectedFile = [UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count)] + message
        default:
            selectedFile = nil
            throw .noApplication
        }
        return []
    }

    private func readFile(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard let file = selectedFile else { throw .wrongState }
        let start = Int(command.p1) << 8 | Int(command.p2)
        guard start < file.count else { throw .wrongParameters }
        return Array(file[start..<min(start + (command.le ?? 0), file.count)])
    }
}

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
