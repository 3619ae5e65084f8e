// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Testing
import Text

/// A file in Tests/Vectors.
func vectors(_ name: String, file: String = #filePath) throws -> JSON {
    let folder = URL(fileURLWithPath: file).deletingLastPathComponent().deletingLastPathComponent()
    return try JSON([UInt8](Data(contentsOf: folder.appendingPathComponent("Vectors/\(name)"))))
}

func hex(_ json: JSON?) throws -> [UInt8] {
    let digits = try #require(json?.string)
    return try #require(Hex.decode(digits))
}

extension JSON {
    func list(_ key: String) throws -> [JSON] {
        let value = self[key]
        return try #require(value?.array)
    }

    func texts(_ key: String) throws -> [String] { try list(key).compactMap(\.string) }

    func text(_ key: String) throws -> String {
        let value = self[key]
        return try #require(value?.string)
    }
}
