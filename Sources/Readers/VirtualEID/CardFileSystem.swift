// SPDX-License-Identifier: GPL-3.0-or-later
import Readers

/// The files of one card by their short identifiers. A file identifier stands for a short identifier.
struct CardFileSystem {
    /// EF.CardAccess.
    static let cardAccess: UInt8 = 0x1C
    /// EF.CardSecurity.
    static let cardSecurity: UInt8 = 0x1D

    private var contents: [UInt8: [UInt8]] = [:]
    private var shortIDs: [UInt16: UInt8] = [:]

    /// Adds a file, or replaces the one with the same short identifier.
    mutating func add(_ file: VirtualEIDDescription.File) {
        contents[file.shortFileID] = file.content
        shortIDs[file.fileID] = file.shortFileID
    }

    func shortID(of fileID: UInt16) -> UInt8? { shortIDs[fileID] }

    /// The content of a file; nil when there is none.
    subscript(shortID: UInt8) -> [UInt8]? { contents[shortID] }

    /// Replaces the whole content of a file that exists.
    mutating func replace(_ shortID: UInt8, with content: [UInt8]) {
        guard contents[shortID] != nil else { return }
        contents[shortID] = content
    }
}
