// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// EF.DIR: the applications of a card. ISO 7816-4, 12.2.3.
package struct ApplicationDirectory: Sendable, Equatable {
    /// The application identifiers in the order of the file.
    package let applicationIDs: [[UInt8]]

    package static let shortFileID: UInt8 = 0x1E

    /// Reads application templates (61 with 4F inside) and single application identifiers (4F). Other objects are ignored;
    /// zero bytes end the content.
    /// - Throws: `BERError`.
    package init(_ bytes: [UInt8]) throws(BERError) {
        var reader = BERReader(bytes)
        var found: [[UInt8]] = []
        while !reader.isAtEnd, !reader.remainder.allSatisfy({ $0 == 0 }) {
            let object = try reader.next()
            switch object.tag {
            case 0x61: found += try object.children.filter { $0.tag == 0x4F }.map(\.value)
            case 0x4F: found.append(object.value)
            default: break
            }
        }
        applicationIDs = found
    }
}
