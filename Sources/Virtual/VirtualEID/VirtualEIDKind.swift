// SPDX-License-Identifier: GPL-3.0-or-later
package import ReadersVirtual
package import Text

/// The kind of the virtual eID card. docs/protocol/readers.md, Virtual reader.
package struct VirtualEIDKind: VirtualCardKind {
    package let name = "eid"
    private let trustPoint: [UInt8]?

    /// Cards that trust the test authority of badged.
    package init() { trustPoint = nil }

    /// - Parameter trustPoint: a self-signed CV certificate of the authority that the cards trust, DER.
    /// - Throws: `Malformed` for other bytes.
    package init(trustPoint: [UInt8]) throws(Malformed) {
        self.trustPoint = trustPoint
        _ = try describe(simulator: nil, card: nil).makeCard()
    }

    /// An empty `simulator` means the files and keys of the default card.
    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        var description = VirtualEIDDescription()
        description.trustPoint = trustPoint
        if let simulator, simulator.members?.isEmpty == false {
            description.files = try Self.files(CardEntry("files", simulator["files"]))
            description.keys = try Self.keys(CardEntry("keys", simulator["keys"]))
        }
        description.options = try VirtualCardOptions(card: card)
        try Self.read(CardEntry("card", card), into: &description)
        return description
    }

    private static func files(_ files: CardEntry) throws(Malformed) -> [VirtualEIDDescription.File] {
        try files.objects().map { file throws(Malformed) in
            let id = try file["fileId"].bytes(2)
            let short = try file["shortFileId"].bytes(1)
            let content = try file["content"].bytes()
            return .init(fileID: UInt16(id[0]) << 8 | UInt16(id[1]), shortFileID: short[0], content: content)
        }
    }

    private static func keys(_ keys: CardEntry) throws(Malformed) -> [VirtualEIDDescription.Key] {
        try keys.objects().map { key throws(Malformed) in
            guard let id = key["id"].json?.int, id > 0, id <= Int32.max else {
                throw key["id"].wrong("is not a whole number above 0")
            }
            return .init(id: id, content: SecretBox(Secret(try key["content"].bytes())))
        }
    }

    private static func read(
        _ card: CardEntry,
        into description: inout VirtualEIDDescription
    ) throws(Malformed) {
        for (key, entry) in card.members {
            switch key {
            case "pin": description.pin = try entry.digits(6)
            case "can": description.can = try entry.digits(6)
            case "puk": description.puk = try entry.digits(10)
            case "transportPin":
                switch entry.json {
                case .bool(false): description.transportPIN = nil
                case .bool(true): description.transportPIN = SecretBox(Secret("12345".utf8))
                default: description.transportPIN = try entry.digits(5)
                }
            case "retryCounter": description.retryCounter = try entry.int(0...3)
            case "pukCounter": description.pukCounter = try entry.int(0...10)
            case "deactivated": description.deactivated = try entry.bool()
            case "keypad": description.hasKeypad = try entry.bool()
            default: continue
            }
        }
    }
}
