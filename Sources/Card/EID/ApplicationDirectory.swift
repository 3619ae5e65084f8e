// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// EF.DIR: the applications of a card. ISO 7816-4, 12.2.3.
package struct ApplicationDirectory: Sendable, Equatable {
    /// The application identifiers in the order of the file.
    package let applicationIDs: [[UInt8]]

    package static let shortFileID: UInt8 = 0x1E

    /// Reads application templates (61 with 4F inside) and single application identifiers (4F). Other objects are
    /// ignored. What is neither ends the content, since a file may be longer than its content.
    /// - Throws: `Malformed` for a malformed template or identifier.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        var reader = BERReader(bytes)
        var found: [[UInt8]] = []
        while let first = reader.remainder.first {
            let isEntry = first == 0x61 || first == 0x4F
            guard isEntry || first != 0x00 && first != 0xFF else { break }
            let object: BERTLV
            do throws(Malformed) {
                object = try reader.next()
            } catch {
                guard isEntry else { break }
                throw error
            }
            switch object.tag {
            case 0x61: found += try object.children.filter { $0.tag == 0x4F }.map(\.value)
            case 0x4F: found.append(object.value)
            default: break
            }
        }
        applicationIDs = found
    }
}
