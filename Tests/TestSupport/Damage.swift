// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Store
import Text

/// Returns a copy of the bytes for each byte, with one bit of this byte changed.
package func changed(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.indices.map { index in
        var copy = bytes
        copy[index] ^= 1
        return copy
    }
}

/// Returns the bytes with one bit changed, cut at each place, twice in a row, and with one byte more.
package func damaged(_ bytes: [UInt8]) -> [[UInt8]] {
    changed(bytes) + bytes.indices.map { Array(bytes.prefix($0)) } + [bytes + bytes, bytes + [0]]
}

/// Changes a byte of a sealed value in the store of a folder, which the test has left, and of its copies in free pages.
package func damageRecord(_ name: String, in space: String, of folder: String) async throws {
    _ = try await onceLeft { () throws(Failure) in try Store(folder: folder) }
    let file = URL(filePath: folder + "/store.db")
    var content = try Data(contentsOf: file)
    // A row has its space, its name and its sealed value without a gap, and the nonce is the beginning of the value.
    let row = Data((space + name).utf8)
    var (rest, isFound) = (content.startIndex..<content.endIndex, false)
    while let place = content.range(of: row, in: rest), place.upperBound + 14 < content.endIndex {
        content[place.upperBound + 14] ^= 1
        rest = place.upperBound..<content.endIndex
        isFound = true
    }
    guard isFound else { throw CocoaError(.fileReadCorruptFile) }
    try content.write(to: file)
}
