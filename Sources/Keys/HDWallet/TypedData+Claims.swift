// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

extension TypedData {
    /// A value that an app shows beside the message, such as the receivers of a transaction.
    package struct Claim: Sendable {
        package enum Kind: Sendable {
            /// An address, or an array of addresses.
            case address
            /// A number of decimal digits, or an array of them.
            case number
            /// A text, an object or something else.
            case other
        }

        let kind: Kind
        let value: JSON
        /// In lower case and without `_`.
        let names: Set<String>

        /// `names` are the names that the member of the message may have, in lower case and without `_`.
        package init(_ kind: Kind, _ value: JSON, names: Set<String>) {
            self.kind = kind
            self.value = value
            self.names = names
        }

        fileprivate var values: [JSON] { value.array ?? [value] }
    }

    /// All values of one member of the message. A member of an array of structs has a value in each of them.
    private struct Column {
        let name: String
        let type: String
        /// nil for arrays of arrays, whose values belong to no single claim.
        var values: [JSON]?
    }

    /// Which claims are the values of members of the message, by type, number and order. A text elsewhere proves nothing.
    ///
    /// All members with a name of a claim must have its values. Addresses and numbers may have other names if the message
    /// has no further member of their type: then the claims are compared one after the other.
    package func signs(_ claims: [Claim]) -> [Bool] {
        let named = Set(claims.flatMap(\.names))
        let columns = columns
        let others = columns.filter { !named.contains(Self.plain($0.name)) }
        var signed = claims.map { claim in
            let own = columns.filter { claim.names.contains(Self.plain($0.name)) }
            return !own.isEmpty && own.allSatisfy { Self.matches($0, claim) }
        }
        for kind in [Claim.Kind.address, .number] {
            let open = claims.indices.filter { index in
                claims[index].kind == kind && !columns.contains { claims[index].names.contains(Self.plain($0.name)) }
            }
            let found = others.filter { Self.kind(of: $0.type) == kind }
            let isSame = zip(found, open).allSatisfy { Self.matches($0, claims[$1]) }
            if found.count == open.count, isSame { for index in open { signed[index] = true } }
        }
        return signed
    }

    /// Whether the message can be about these addresses: each occurs as an address of its own, or as a word in data. A
    /// member with a name of the claim must have its value.
    package func mentions(_ claim: Claim, among claims: [Claim]) -> Bool {
        let columns = columns
        let own = columns.filter { claim.names.contains(Self.plain($0.name)) }
        guard own.isEmpty else { return own.allSatisfy { Self.matches($0, claim) } }
        let taken = Set(claims.flatMap(\.names))
        var found = values.filter { !taken.contains(Self.plain($0.name)) }.flatMap { value in
            Self.single(value.json).flatMap { Self.addresses(in: $0, of: value.type) }
        }
        return claim.values.allSatisfy { address in
            guard let bytes = Self.bytes(address), let index = found.firstIndex(of: bytes) else { return false }
            found.remove(at: index)
            return true
        }
    }

    private var columns: [Column] {
        var columns: [Column] = []
        var indexes: [Int: Int] = [:]
        for value in values {
            let index = indexes[value.place] ?? columns.count
            indexes[value.place] = index
            if index == columns.count { columns.append(Column(name: value.name, type: value.type, values: [])) }
            if value.arrays > 1 {
                columns[index].values = nil
            } else {
                columns[index].values? += value.json.array ?? [value.json]
            }
        }
        return columns
    }

    private static func matches(_ column: Column, _ claim: Claim) -> Bool {
        guard let values = column.values, values.count == claim.values.count else { return false }
        if claim.kind != .other, kind(of: column.type) != claim.kind { return false }
        return zip(values, claim.values).allSatisfy { value, claimed in
            switch claim.kind {
            case .address: bytes(value) != nil && bytes(value) == bytes(claimed)
            case .number: isSameNumber(value, claimed)
            case .other: isSame(value, claimed)
            }
        }
    }

    private static func kind(of type: String) -> Claim.Kind {
        if type == "address" { return .address }
        return type.hasPrefix("uint") || type.hasPrefix("int") ? .number : .other
    }

    private static func plain(_ name: String) -> String { name.lowercased().filter { $0 != "_" } }

    /// The bytes of `0x` and hexadecimal digits.
    private static func bytes(_ value: JSON) -> [UInt8]? {
        guard let text = value.string, text.hasPrefix("0x") else { return nil }
        return Hex.decode(text.dropFirst(2), limit: maximumBytes)
    }

    private static func isSameNumber(_ value: JSON, _ claimed: JSON) -> Bool {
        guard let left = try? Encoder.integer(value), let right = try? Encoder.integer(claimed) else { return false }
        return left == right
    }

    private static func isSame(_ value: JSON, _ claimed: JSON) -> Bool {
        switch (value, claimed) {
        case (.string(let value), .string(let claimed)): value.utf8.elementsEqual(claimed.utf8)
        case (.number, .string), (.number, .number): isSameNumber(value, claimed)
        case (.array(let items), .array(let others)):
            items.count == others.count && zip(items, others).allSatisfy { isSame($0, $1) }
        case (.object(let members), .object(let others)):
            members.count == others.count
                && others.allSatisfy { other in
                    members.contains { $0.key.utf8.elementsEqual(other.key.utf8) && isSame($0.value, other.value) }
                }
        default: value == claimed
        }
    }

    /// The values inside of arrays.
    private static func single(_ value: JSON) -> [JSON] { value.array.map { $0.flatMap(single) } ?? [value] }

    /// The addresses that a value can stand for: itself, 20 bytes, or words of 32 bytes, perhaps behind the selector of a
    /// function.
    private static func addresses(in value: JSON, of type: String) -> [[UInt8]] {
        guard type == "address" || type.hasPrefix("bytes"), let bytes = bytes(value) else { return [] }
        let start = bytes.count % 32
        switch start {
        case 20 where bytes.count == 20: return [bytes]
        case 0, 4:
            return stride(from: start, to: bytes.count, by: 32).compactMap { word in
                bytes[word..<word + 12].allSatisfy { $0 == 0 } ? Array(bytes[word + 12..<word + 32]) : nil
            }
        default: return []
        }
    }
}
