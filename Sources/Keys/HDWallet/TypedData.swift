// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Text

/// Structured data that a user can read before they are signed. EIP-712.
///
/// The data are strict, so nothing is shown that is not signed: each member of `message` and `domain` has a type and a
/// value, each type is used, and names are compared byte by byte.
package struct TypedData: Sendable, Equatable {
    /// `types`, `primaryType`, `domain` and `message` as they were read.
    package let json: JSON
    /// Keccak-256 of 1901, the hash of the domain and the hash of the message.
    package let digest: [UInt8]
    /// The hash of the domain.
    package let domainSeparator: [UInt8]
    /// The members of the message and of the structs in it, in the order in which they are signed.
    let values: [Value]

    /// A member of a struct in the message.
    struct Value: Sendable, Equatable {
        let name: String
        /// The type without the lengths of arrays.
        let type: String
        let json: JSON
        /// The member of the type: it is the same for each element of an array of structs.
        let place: Int
        /// How many arrays are around a single value.
        let arrays: Int
    }

    /// The limits of what is read.
    private static let maximumTypes = 64
    private static let maximumMembers = 64
    private static let maximumDepth = 16
    private static let maximumValues = 4096
    static let maximumBytes = 65_536
    /// The bytes of the texts of all types, each of them with the types that it uses.
    private static let maximumTypeText = 262_144

    package init(_ json: JSON) throws(Malformed) {
        guard json.members?.map(\.key).sorted() == ["domain", "message", "primaryType", "types"],
            let primary = json["primaryType"]?.string, let domain = json["domain"], let message = json["message"]
        else { throw Malformed("the members must be types, primaryType, domain and message") }
        var encoder = try Encoder(json["types"] ?? .null, domain)
        domainSeparator = try encoder.hash(domain, of: Encoder.domainType, 0)
        encoder.members = []
        var digest: [UInt8] = [0x19, 0x01] + domainSeparator
        if primary == Encoder.domainType {
            // With this type, the hash of the message is not a part of the digest.
            guard message.members?.isEmpty == true else {
                throw Malformed("with the primaryType EIP712Domain the message is not signed, so it must be empty")
            }
        } else {
            digest += try encoder.hash(message, of: primary, 0)
        }
        try encoder.requireUse(of: json["types"] ?? .null)
        self.digest = Keccak256.hash(digest)
        values = encoder.members
        self.json = json
    }
}

extension TypedData {
    /// Hashes values by their types.
    struct Encoder {
        static let domainType = "EIP712Domain"

        struct Member {
            let name: String
            let type: String
            /// The type without its brackets.
            let base: String
        }

        private var types: [String: [Member]] = [:]
        private var typeHashes: [String: [UInt8]] = [:]
        private var typeTextCount = 0
        /// The types that are a part of the digest.
        private var usedTypes: Set<String> = []
        private var values = 0
        /// The members of the value that was hashed.
        var members: [Value] = []
        /// A number for each member of a type below the member around it.
        private var places: [Place: Int] = [:]

        private struct Place: Hashable {
            let parent: Int
            let name: String
        }

        init(_ json: JSON, _ domain: JSON) throws(Malformed) {
            guard let entries = json.members, entries.count <= TypedData.maximumTypes else {
                throw Malformed("types is not an object, or has more than \(TypedData.maximumTypes) types")
            }
            for entry in entries {
                guard Self.isName(entry.key), types[entry.key] == nil, !Self.isBuiltIn(entry.key) else {
                    throw Malformed("a type has an invalid or repeated name")
                }
                types[entry.key] = try Self.members(entry.value)
            }
            if types[Self.domainType] == nil { types[Self.domainType] = try Self.domainMembers(domain) }
        }

        private static func members(_ json: JSON) throws(Malformed) -> [Member] {
            guard let list = json.array, list.count <= TypedData.maximumMembers else {
                throw Malformed("a type is not an array, or has more than \(TypedData.maximumMembers) members")
            }
            var members: [Member] = []
            for item in list {
                guard item.members?.count == 2, let name = item["name"]?.string, let type = item["type"]?.string,
                    isName(name), !members.contains(where: { $0.name == name }), type.utf8.count <= 128
                else { throw Malformed("a member of a type needs a unique name and a type") }
                members.append(try member(name, type))
            }
            return members
        }

        private static func member(_ name: String, _ type: String) throws(Malformed) -> Member {
            var base = type
            while let array = try array(base) { base = array.element }
            return Member(name: name, type: type, base: base)
        }

        /// The type of the domain if it is not given: its members in the order of EIP-712.
        private static func domainMembers(_ domain: JSON) throws(Malformed) -> [Member] {
            let known = [
                ("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address"),
                ("salt", "bytes32"),
            ]
            var members: [Member] = []
            for (name, type) in known where domain[name] != nil { members.append(try member(name, type)) }
            return members
        }

        /// Types of EIP-712, and types of Solidity and its ABI that EIP-712 lacks. A program that knows such a type hashes
        /// a struct of this name in another way.
        private static let builtIns: Set = [
            "address", "array", "bool", "byte", "bytes", "contract", "enum", "fixed", "function", "hash", "int",
            "mapping",
            "real", "string", "struct", "tuple", "ufixed", "uint", "ureal", "var",
        ]

        /// Whether a name is that of a built-in type, or looks like one, such as `uint7` and `fixed128x18`.
        private static func isBuiltIn(_ name: String) -> Bool {
            let letters = name.utf8.prefix { !(0x30...0x39).contains($0) }
            return builtIns.contains(String(Substring(letters)))
                && name.utf8.dropFirst(letters.count)
                    .allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: "x") }
        }

        /// Throws if a type of `types` is not a part of the digest.
        func requireUse(of types: JSON) throws(Malformed) {
            guard types.members?.allSatisfy({ usedTypes.contains($0.key) }) == true else {
                throw Malformed("types has a type that neither the domain nor the message uses, so it is not signed")
            }
        }

        private static func isName(_ text: String) -> Bool {
            guard let first = text.utf8.first, text.utf8.count <= 64, !(0x30...0x39).contains(first) else {
                return false
            }
            return text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x5F, 0x24: true
                default: false
                }
            }
        }

        // MARK: Types

        /// A type of one word of 32 bytes.
        private enum Atomic {
            case bool, address
            case bytes(Int)
            case unsigned(bits: Int)
            case signed(bits: Int)
        }

        private static func atomic(_ type: String) -> Atomic? {
            func number(_ prefix: String) -> Int? {
                guard type.hasPrefix(prefix) else { return nil }
                let digits = type.dropFirst(prefix.count)
                guard (1...3).contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                    digits.utf8.first != 0x30
                else { return nil }
                return Int(digits)
            }
            switch type {
            case "bool": return .bool
            case "address": return .address
            default: break
            }
            if let count = number("bytes"), (1...32).contains(count) { return .bytes(count) }
            for (prefix, isSigned) in [("uint", false), ("int", true)] {
                if let bits = number(prefix), (8...256).contains(bits), bits.isMultiple(of: 8) {
                    return isSigned ? .signed(bits: bits) : .unsigned(bits: bits)
                }
            }
            return nil
        }

        /// Splits an array type such as `Person[2][]` at its last brackets; nil for another type.
        private static func array(_ type: String) throws(Malformed) -> (element: String, count: Int?)? {
            guard type.utf8.last == UInt8(ascii: "]") else { return nil }
            guard let open = type.lastIndex(of: "[") else { throw Malformed("an array type has no [") }
            let digits = type[type.index(after: open)...].dropLast()
            if digits.isEmpty { return (String(type[..<open]), nil) }
            // The type is hashed as it is written, so a length has one notation.
            guard digits.utf8.count <= 4, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                digits.utf8.first != UInt8(ascii: "0"), let count = Int(digits)
            else {
                throw Malformed("the length of an array type is not a number of 1 to 4 digits without a zero in front")
            }
            return (String(type[..<open]), count)
        }

        /// The name of a type and its members, then the types that it uses in alphabetical order. EIP-712, encodeType.
        private mutating func typeHash(_ name: String) throws(Malformed) -> [UInt8] {
            if let hash = typeHashes[name] { return hash }
            var used: Set<String> = []
            var open = [name]
            while let next = open.popLast() {
                guard let members = types[next] else { throw Malformed("a type is not defined") }
                for member in members {
                    let base = member.base
                    guard Self.isName(base), types[base] != nil else {
                        guard base == "string" || base == "bytes" || Self.atomic(base) != nil else {
                            throw Malformed("a type is not known")
                        }
                        continue
                    }
                    if base != name, used.insert(base).inserted { open.append(base) }
                }
            }
            usedTypes.formUnion(used)
            usedTypes.insert(name)
            var text = ""
            for type in [name] + used.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
                let members = (types[type] ?? []).map { "\($0.type) \($0.name)" }
                text += "\(type)(\(members.joined(separator: ",")))"
                // A chain of types has the text of each one many times.
                guard typeTextCount + text.utf8.count <= TypedData.maximumTypeText else {
                    throw Malformed("the types are too long")
                }
            }
            typeTextCount += text.utf8.count
            let hash = Keccak256.hash(text.utf8)
            typeHashes[name] = hash
            return hash
        }

        // MARK: Values

        /// EIP-712, hashStruct.
        mutating func hash(
            _ value: JSON,
            of type: String,
            _ depth: Int,
            below parent: Int = 0,
            arrays: Int = 0
        ) throws(Malformed) -> [UInt8] {
            guard depth < TypedData.maximumDepth else { throw Malformed("the message is nested too deeply") }
            guard Self.isName(type), let members = types[type] else { throw Malformed("a type is not defined") }
            guard let found = value.members, found.count == members.count else {
                throw Malformed("the members of a value do not match its type")
            }
            var bytes = try typeHash(type)
            for member in members {
                // Swift takes some characters as equal that have other bytes, such as K and the sign of Kelvin.
                guard let value = found.first(where: { $0.key.utf8.elementsEqual(member.name.utf8) })?.value else {
                    throw Malformed("the members of a value do not match its type")
                }
                let place = number(of: Place(parent: parent, name: member.name))
                try note(member, value, place, arrays)
                bytes += try word(value, member.type, depth, place: place, arrays: arrays)
            }
            return Keccak256.hash(bytes)
        }

        private mutating func number(of place: Place) -> Int {
            if let number = places[place] { return number }
            places[place] = places.count + 1
            return places.count
        }

        private mutating func note(_ member: Member, _ json: JSON, _ place: Int, _ arrays: Int) throws(Malformed) {
            var (type, arrays) = (member.type, arrays)
            while let (element, _) = try Self.array(type) {
                type = element
                arrays += 1
            }
            members.append(Value(name: member.name, type: type, json: json, place: place, arrays: arrays))
        }

        /// The 32 bytes of a value. EIP-712, encodeData.
        private mutating func word(
            _ value: JSON,
            _ type: String,
            _ depth: Int,
            place: Int,
            arrays: Int
        ) throws(Malformed) -> [UInt8] {
            values += 1
            guard values <= TypedData.maximumValues else { throw Malformed("the message has too many values") }
            if let (element, count) = try Self.array(type) {
                guard depth < TypedData.maximumDepth else { throw Malformed("the message is nested too deeply") }
                guard let items = value.array, count == nil || count == items.count else {
                    throw Malformed("the length of an array does not match its type")
                }
                var bytes: [UInt8] = []
                for item in items { bytes += try word(item, element, depth + 1, place: place, arrays: arrays + 1) }
                return Keccak256.hash(bytes)
            }
            if types[type] != nil { return try hash(value, of: type, depth + 1, below: place, arrays: arrays) }
            switch type {
            case "string":
                guard let text = value.string else { throw Malformed("a value of type string is not a string") }
                return Keccak256.hash(text.utf8)
            case "bytes":
                return Keccak256.hash(try Self.bytes(value, 0...TypedData.maximumBytes))
            default:
                guard let atomic = Self.atomic(type) else { throw Malformed("a type is not known") }
                return try Self.word(value, atomic)
            }
        }

        private static func word(_ value: JSON, _ type: Atomic) throws(Malformed) -> [UInt8] {
            switch type {
            case .bool:
                guard let bool = value.bool else { throw Malformed("a bool is not true or false") }
                return padding(31) + [bool ? 1 : 0]
            case .address: return padding(12) + (try bytes(value, 20...20))
            case .bytes(let count): return try bytes(value, count...count) + padding(32 - count)
            case .unsigned(let bits):
                let (isNegative, magnitude) = try integer(value)
                guard !isNegative, magnitude.prefix(32 - bits / 8).allSatisfy({ $0 == 0 }) else {
                    throw Malformed("a number does not fit its type")
                }
                return magnitude
            case .signed(let bits):
                let (isNegative, magnitude) = try integer(value)
                let start = 32 - bits / 8
                let isSmall = magnitude.prefix(start).allSatisfy { $0 == 0 }
                let isLowest = magnitude[start] == 0x80 && magnitude[(start + 1)...].allSatisfy { $0 == 0 }
                guard isSmall, magnitude[start] < 0x80 || isNegative && isLowest else {
                    throw Malformed("a number does not fit its type")
                }
                return isNegative ? negated(magnitude) : magnitude
            }
        }

        private static func padding(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

        private static func bytes(_ value: JSON, _ counts: ClosedRange<Int>) throws(Malformed) -> [UInt8] {
            guard let text = value.string, text.hasPrefix("0x"),
                let bytes = Hex.decode(text.dropFirst(2), limit: counts.upperBound), counts.contains(bytes.count)
            else { throw Malformed("bytes are not 0x and the right number of hexadecimal digits") }
            return bytes
        }

        /// Reads a whole number: a number, decimal digits, or `0x` and hexadecimal digits. The magnitude has 32 bytes.
        static func integer(_ value: JSON) throws(Malformed) -> (isNegative: Bool, magnitude: [UInt8]) {
            var text: Substring
            switch value {
            case .number(let digits): text = digits[...]
            case .string(let digits): text = digits[...]
            case .null, .bool, .array, .object: throw Malformed("a value of a number type is not a number")
            }
            let isNegative = text.hasPrefix("-")
            if isNegative { text = text.dropFirst() }
            let isHexadecimal = text.hasPrefix("0x")
            if isHexadecimal { text = text.dropFirst(2) }
            guard (1...80).contains(text.utf8.count) else {
                throw Malformed("a value of a number type is not a number")
            }
            var magnitude = padding(32)
            for byte in text.utf8 {
                guard let digit = Hex.value(byte), isHexadecimal || digit < 10 else {
                    throw Malformed("a value of a number type is not a number")
                }
                var carry = Int(digit)
                for index in magnitude.indices.reversed() {
                    carry += Int(magnitude[index]) * (isHexadecimal ? 16 : 10)
                    magnitude[index] = UInt8(truncatingIfNeeded: carry)
                    carry >>= 8
                }
                guard carry == 0 else { throw Malformed("a number does not fit its type") }
            }
            if isNegative, magnitude.allSatisfy({ $0 == 0 }) { throw Malformed("a number is a negative zero") }
            return (isNegative, magnitude)
        }

        /// The two's complement.
        private static func negated(_ magnitude: [UInt8]) -> [UInt8] {
            var result = magnitude.map { ~$0 }
            for index in result.indices.reversed() {
                result[index] &+= 1
                if result[index] != 0 { break }
            }
            return result
        }
    }
}
