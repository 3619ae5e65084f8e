// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import ReadersVirtual
import Text

/// A kind of virtual card as a developer adds it: the library card in software. No code in Sources refers to it.
struct VirtualLibraryKind: VirtualCardKind {
    let name = "library"

    func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        guard simulator == nil else { throw Malformed("simulator is only for eID cards") }
        var description = VirtualLibraryDescription()
        let books = CardEntry("card", card)["books"]
        if books.json != nil { description.books = UInt8(try books.int(0...9)) }
        description.options = try VirtualCardOptions(card: card)
        return description
    }
}

struct VirtualLibraryDescription: VirtualCardDescription {
    /// The number of books that are lent.
    var books: UInt8 = 1
    var options = VirtualCardOptions()

    func makeCard() throws(Malformed) -> VirtualCard {
        try VirtualCard(VirtualLibraryCard(books: books), options)
    }
}

final class VirtualLibraryCard: VirtualCardSoftware {
    private var books: UInt8
    private var isOpen = false
    let historicalBytes: [UInt8] = Array("library".utf8)
    var counters: [JSON.Member] { [.init("books", .number(String(books)))] }

    init(books: UInt8) { self.books = books }

    func process(_ command: [UInt8]) -> [UInt8] {
        guard let command = CommandAPDU(bytes: command) else { return [0x67, 0x00] }
        switch command.ins {
        case 0xA4 where command == LibraryCommand.select: return [books, 0x90, 0x00]
        case 0x20:
            isOpen = command.data == Array("2468".utf8)
            return isOpen ? [0x90, 0x00] : [0x63, 0xC2]
        case 0xDC where isOpen:
            books += 1
            return [books, 0x90, 0x00]
        default: return [0x6A, 0x82]
        }
    }

    func reset() { isOpen = false }
}
