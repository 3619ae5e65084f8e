// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Testing
import Text

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
