// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import Secrets
package import Text

/// Names the entry of a `simulator` or `card` object that is wrong, and how.
package struct CardFileError: Error, Sendable, Equatable {
    package let text: String
}

/// The JSON form of virtual cards: the SDK's `simulator` object and our `card` object.
/// docs/protocol/readers.md, Virtual reader.
package enum CardFile {
    /// Most files and keys in one description, most bytes in one file.
    private static let maximumEntries = 256
    private static let maximumContent = 65_535

    /// A document `{"simulator": {...}, "card": {...}}`, both optional.
    package static func description(from document: JSON) throws(CardFileError) -> VirtualCardDescription {
        guard let members = document.members else { throw CardFileError(text: "the document is not an object") }
        for key in ["simulator", "card"] where members.contains(where: { $0.key == key }) {
            guard document[key]?.members != nil else { throw CardFileError(text: "\(key) is not an object") }
        }
        return try description(simulator: document["simulator"], card: document["card"])
    }

    /// Both are objects where they are given. Nothing given, or an empty `simulator`, means the default card.
    package static func description(simulator: JSON?, card: JSON?) throws(CardFileError) -> VirtualCardDescription {
        var description = VirtualCardDescription()
        if let simulator, simulator.members?.isEmpty == false {
            description.files = try files(simulator["files"])
            description.keys = try keys(simulator["keys"])
        }
        if let card { try read(card, into: &description) }
        return description
    }

    // MARK: simulator

    private static func files(_ json: JSON?) throws(CardFileError) -> [VirtualCardDescription.File] {
        guard let json else { return [] }
        guard let entries = json.array else { throw CardFileError(text: "files is not an array") }
        guard entries.count <= maximumEntries else {
            throw CardFileError(text: "files has more than \(maximumEntries) entries")
        }
        var files: [VirtualCardDescription.File] = []
        for (index, entry) in entries.enumerated() {
            let name = "files[\(index)]"
            guard entry.members != nil else { throw CardFileError(text: "\(name) is not an object") }
            let id = try hex(entry["fileId"], "\(name).fileId", count: 2)
            let short = try hex(entry["shortFileId"], "\(name).shortFileId", count: 1)
            let content = try hex(entry["content"], "\(name).content", count: nil)
            files.append(.init(fileID: UInt16(id[0]) << 8 | UInt16(id[1]), shortFileID: short[0], content: content))
        }
        return files
    }

    private static func keys(_ json: JSON?) throws(CardFileError) -> [VirtualCardDescription.Key] {
        guard let json else { return [] }
        guard let entries = json.array else { throw CardFileError(text: "keys is not an array") }
        guard entries.count <= maximumEntries else {
            throw CardFileError(text: "keys has more than \(maximumEntries) entries")
        }
        var keys: [VirtualCardDescription.Key] = []
        for (index, entry) in entries.enumerated() {
            let name = "keys[\(index)]"
            guard entry.members != nil else { throw CardFileError(text: "\(name) is not an object") }
            guard let id = entry["id"]?.int, id > 0, id <= Int32.max else {
                throw CardFileError(text: "\(name).id is not a whole number above 0")
            }
            let content = try hex(entry["content"], "\(name).content", count: nil)
            keys.append(.init(id: id, content: SecretBox(Secret(content))))
        }
        return keys
    }

    private static func hex(_ json: JSON?, _ name: String, count: Int?) throws(CardFileError) -> [UInt8] {
        guard let json else { throw CardFileError(text: "\(name) is missing") }
        guard let text = json.string else { throw CardFileError(text: "\(name) is not a string") }
        guard text.utf8.count.isMultiple(of: 2) else {
            throw CardFileError(text: "\(name) has an odd number of digits")
        }
        guard text.utf8.count <= maximumContent * 2 else {
            throw CardFileError(text: "\(name) is longer than \(maximumContent) bytes")
        }
        guard let bytes = Hex.decode(text) else { throw CardFileError(text: "\(name) is not hexadecimal") }
        if let count, bytes.count != count {
            throw CardFileError(text: "\(name) is not \(count) byte\(count == 1 ? "" : "s") in hexadecimal")
        }
        return bytes
    }

    // MARK: card

    private static func read(_ card: JSON, into result: inout VirtualCardDescription) throws(CardFileError) {
        for member in card.members ?? [] {
            let value = member.value
            switch member.key {
            case "pin": result.pin = try digits(value, "card.pin", count: 6)
            case "can": result.can = try digits(value, "card.can", count: 6)
            case "puk": result.puk = try digits(value, "card.puk", count: 10)
            case "transportPin":
                switch value {
                case .bool(false): result.transportPIN = nil
                case .bool(true): result.transportPIN = SecretBox(Secret("12345".utf8))
                default: result.transportPIN = try digits(value, "card.transportPin", count: 5)
                }
            case "retryCounter": result.retryCounter = try int(value, "card.retryCounter", 0...3)
            case "pukCounter": result.pukCounter = try int(value, "card.pukCounter", 0...10)
            case "deactivated": result.deactivated = try bool(value, "card.deactivated")
            case "keypad": result.hasKeypad = try bool(value, "card.keypad")
            case "latencyMs": result.latency = try int(value, "card.latencyMs", 0...60_000)
            case "faults": result.faults = try faults(value)
            default: continue
            }
        }
    }

    private static func digits(_ json: JSON, _ name: String, count: Int) throws(CardFileError) -> SecretBox {
        guard let text = json.string, text.utf8.count == count, text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { throw CardFileError(text: "\(name) is not a string of \(count) digits") }
        return SecretBox(Secret(text.utf8))
    }

    private static func int(_ json: JSON, _ name: String, _ range: ClosedRange<Int>) throws(CardFileError) -> Int {
        guard let value = json.int, range.contains(value) else {
            throw CardFileError(text: "\(name) is not a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    private static func bool(_ json: JSON, _ name: String) throws(CardFileError) -> Bool {
        guard let value = json.bool else { throw CardFileError(text: "\(name) is not true or false") }
        return value
    }

    private static func faults(_ json: JSON) throws(CardFileError) -> [VirtualCardDescription.Fault] {
        guard let entries = json.array else { throw CardFileError(text: "card.faults is not an array") }
        guard entries.count <= maximumEntries else {
            throw CardFileError(text: "card.faults has more than \(maximumEntries) entries")
        }
        var faults: [VirtualCardDescription.Fault] = []
        for (index, entry) in entries.enumerated() {
            let name = "card.faults[\(index)]"
            guard entry.members != nil else { throw CardFileError(text: "\(name) is not an object") }
            guard let after = entry["afterApdu"] else { throw CardFileError(text: "\(name).afterApdu is missing") }
            let count = try int(after, "\(name).afterApdu", 0...1_000_000)
            guard let text = entry["do"]?.string, let action = action(text) else {
                throw CardFileError(
                    text: "\(name).do is not one of remove, removeAfter, mute, truncate, garbage, sw:XXXX"
                )
            }
            faults.append(.init(afterAPDU: count, action: action))
        }
        return faults
    }

    private static func action(_ text: String) -> VirtualCardDescription.Fault.Action? {
        switch text {
        case "remove": return .remove
        case "removeAfter": return .removeAfter
        case "mute": return .mute
        case "truncate": return .truncate
        case "garbage": return .garbage
        default:
            guard text.hasPrefix("sw:"), let bytes = Hex.decode(text.dropFirst(3)), bytes.count == 2 else { return nil }
            return .status(StatusWord(UInt16(bytes[0]) << 8 | UInt16(bytes[1])))
        }
    }
}
