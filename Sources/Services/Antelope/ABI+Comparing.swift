// SPDX-License-Identifier: GPL-3.0-or-later
import Text

extension ABI {
    /// Checks that unpacked data are what was asked for, member by member.
    ///
    /// Only the notation may differ: numbers as text or number, the case of hexadecimal digits, zeros in front of a
    /// number, zeros at the end of a time, an older form of a key.
    /// - Throws: `Malformed` with the place of the first difference.
    func compare(_ found: JSON, with asked: JSON, as type: String) throws(Malformed) {
        switch try meaning(of: type) {
        case .builtIn(let type):
            guard try Self.isSame(found, asked, type) else {
                let text = String(decoding: found.bytes.prefix(64), as: UTF8.self)
                throw Malformed("the value cannot be packed as it is: it would become \(text)")
            }
        case .structure(let fields):
            let names = Set(fields.map(\.name))
            guard let members = asked.members, members.allSatisfy({ names.contains($0.key) }) else {
                throw Self.difference
            }
            let askedByKey = JSON.byKey(members)
            let foundByKey = JSON.byKey(found.members ?? [])
            for field in fields {
                let found = foundByKey[field.name]
                let asked = askedByKey[field.name]
                // At the end of the data, an extension without bytes is the same as none.
                if found == nil, field.isExtension, asked.map(Self.isEmpty) ?? true { continue }
                try compare(found, with: asked, as: field.type, at: field.name)
            }
        case .variant:
            guard let found = found.array, let asked = asked.array, found.count == 2, asked.count == 2,
                found[0] == asked[0], let type = found[0].string
            else { throw Self.difference }
            try compare(found[1], with: asked[1], as: type)
        case .optional(let inner):
            guard (found == .null) == (asked == .null) else { throw Self.difference }
            if asked != .null { try compare(found, with: asked, as: inner) }
        case .array(let inner), .fixedArray(let inner, _):
            guard let found = found.array, let asked = asked.array, found.count == asked.count else {
                throw Self.difference
            }
            for (index, pair) in zip(found, asked).enumerated() {
                try compare(pair.0, with: pair.1, as: inner, at: "[\(index)]")
            }
        }
    }

    private static let difference = Malformed("the packed data are not what was asked for")

    private func compare(_ found: JSON?, with asked: JSON?, as type: String, at place: String) throws(Malformed) {
        try Malformed.at(place) { () throws(Malformed) in
            guard let found, let asked else { throw Self.difference }
            try compare(found, with: asked, as: type)
        }
    }

    /// Whether a value that fits its type has no bytes.
    private static func isEmpty(_ value: JSON) -> Bool {
        switch value {
        case .object(let members): members.allSatisfy { isEmpty($0.value) }
        case .array(let items): items.allSatisfy(isEmpty)
        case .null, .bool, .number, .string: false
        }
    }

    private static func isSame(_ found: JSON, _ asked: JSON, _ type: BuiltIn) throws(Malformed) -> Bool {
        if case .extendedAsset = type {
            guard let quantity = found["quantity"], let other = asked["quantity"],
                let contract = found["contract"]?.string
            else { return false }
            guard contract == asked["contract"]?.string else { return false }
            return try isSame(quantity, other, .asset)
        }
        if case .bool = type {
            return asked == found || asked == .number(found == .bool(true) ? "1" : "0")
        }
        guard let found = scalar(found), let asked = scalar(asked) else { return false }
        switch type {
        case .int8, .int16, .int32, .int64, .int128, .uint8, .uint16, .uint32, .uint64, .uint128, .varint32, .varuint32:
            return digits(found) == digits(asked)
        case .float32, .float64:
            guard let found = Double(found), let asked = Double(asked), found.isFinite else { return false }
            if case .float64 = type { return found == asked }
            // The number may be rounded, but does not become zero.
            return Float(found) == Float(asked) && (found == 0) == (asked == 0)
        case .timePoint, .timePointSec, .blockTimestamp: return try AntelopeTime(found) == AntelopeTime(asked)
        case .float128, .bytes, .checksum160, .checksum256, .checksum512:
            return found.lowercased() == asked.lowercased()
        case .publicKey: return try KeyText(found, .publicKey) == KeyText(asked, .publicKey)
        case .signature: return try KeyText(found, .signature) == KeyText(asked, .signature)
        case .symbol: return try TokenSymbol(found) == TokenSymbol(asked)
        case .asset: return try Asset(found) == Asset(asked)
        // Swift takes the composed and the decomposed form of a character as equal.
        case .name, .string, .symbolCode, .bitset: return found.utf8.elementsEqual(asked.utf8)
        case .bool, .extendedAsset: return false
        }
    }

    private static func scalar(_ value: JSON) -> String? {
        switch value {
        case .number(let text), .string(let text): text
        case .null, .bool, .array, .object: nil
        }
    }

    /// The sign and the digits of a whole number, without zeros in front.
    private static func digits(_ text: String) -> String {
        let digits = String(text.drop { $0 == "-" }.drop { $0 == "0" })
        return text.hasPrefix("-") && !digits.isEmpty ? "-" + digits : digits
    }
}
