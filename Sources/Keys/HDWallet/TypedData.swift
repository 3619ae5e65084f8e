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

    /// The limits of what is read.
    private static let maximumTypes = 64
    private static let maximumMembers = 64
    private static let maximumDepth = 16
    private static let maximumValues = 4096
    private static let maximumBytes = 65_536

    package init(_ json: JSON) throws(Malformed) {
        guard json.members?.map(\.key).sorted() == ["domain", "message", "primaryType", "types"],
            let primary = json["primaryType"]?.string, let domain = json["domain"], let message = json["message"]
        else { throw Malformed("the members must be types, primaryType, domain and message") }
        var encoder = try Encoder(json["types"] ?? .null, domain)
        domainSeparator = try encoder.hash(domain, of: Encoder.domainType, 0)
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
        self.json = json
    }

    /// Whether a value is in `message`: a text, a number in any notation or as a word of 32 bytes inside of data, or data
    /// inside of longer data. Of arrays and objects, each value must be there.
    package func mentions(_ value: JSON) -> Bool {
        switch value {
        case .null, .bool: false
        case .string(let text), .number(let text): mentions(text)
        case .array(let items): items.allSatisfy(mentions)
        case .object(let members): members.allSatisfy { mentions($0.value) }
        }
    }

    private func mentions(_ text: String) -> Bool {
        let isNumber = !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
        let number = isNumber ? try? Encoder.integer(.string(text)).magnitude : nil
        let digits =
            text.hasPrefix("0x") ? text.utf8.dropFirst(2).map(Self.lower) : number.map { Array(Hex.encode($0).utf8) }
        return Self.values(json["message"] ?? .null).contains { value in
            switch value {
            case .string(let found), .number(let found):
                if found.utf8.elementsEqual(text.utf8) { return true }
                if let number, (try? Encoder.integer(value).magnitude) == number { return true }
                return found.hasPrefix("0x") && digits.map { Self.contains(Array(found.utf8), $0) } ?? false
            case .null, .bool, .array, .object: return false
            }
        }
    }

    /// The values in a value that have no members.
    private static func values(_ value: JSON) -> [JSON] {
        switch value {
        case .array(let items): items.flatMap(values)
        case .object(let members): members.flatMap { values($0.value) }
        case .null, .bool, .number, .string: [value]
        }
    }

    /// Whether a string in `message` contains the hexadecimal digits of an address, also inside longer data.
    package func mentions(_ address: EthereumAddress) -> Bool {
        let digits = Array(Hex.encode(address.bytes).utf8)
        return Self.values(json["message"] ?? .null).contains { Self.contains(Array(($0.string ?? "").utf8), digits) }
    }

    private static func contains(_ text: [UInt8], _ digits: [UInt8]) -> Bool {
        guard text.count >= digits.count else { return false }
        let lower = text.map(Self.lower)
        return (0...lower.count - digits.count).contains { lower[$0..<$0 + digits.count].elementsEqual(digits) }
    }

    private static func lower(_ digit: UInt8) -> UInt8 { (0x41...0x46).contains(digit) ? digit | 0x20 : digit }
}

extension TypedData {
    /// Hashes values by their types.
    private struct Encoder {
        static let domainType = "EIP712Domain"

        struct Member {
            let name: String
            let type: String
        }

        private var types: [String: [Member]] = [:]
        private var typeHashes: [String: [UInt8]] = [:]
        /// The types that are a part of the digest.
        private var usedTypes: Set<String> = []
        private var values = 0

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
                members.append(Member(name: name, type: type))
            }
            return members
        }

        /// The type of the domain if it is not given: its members in the order of EIP-712.
        private static func domainMembers(_ domain: JSON) throws(Malformed) -> [Member] {
            let known = [
                ("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address"),
                ("salt", "bytes32"),
            ]
            return known.filter { domain[$0.0] != nil }.map { Member(name: $0.0, type: $0.1) }
        }

        /// Whether a name is that of a type that each message has, or looks like one, such as `uint7`.
        private static func isBuiltIn(_ name: String) -> Bool {
            if ["bool", "address", "string"].contains(name) { return true }
            let letters = name.utf8.prefix { !(0x30...0x39).contains($0) }
            return ["bytes", "uint", "int"].contains(String(Substring(letters)))
                && name.utf8.dropFirst(letters.count).allSatisfy { (0x30...0x39).contains($0) }
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
            guard digits.utf8.count <= 4, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let count = Int(digits)
            else { throw Malformed("the length of an array type is not a number of 1 to 4 digits") }
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
                    var base = member.type
                    while let array = try Self.array(base) { base = array.element }
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
            }
            let hash = Keccak256.hash(text.utf8)
            typeHashes[name] = hash
            return hash
        }

        // MARK: Values

        /// EIP-712, hashStruct.
        mutating func hash(_ value: JSON, of type: String, _ depth: Int) throws(Malformed) -> [UInt8] {
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
                bytes += try word(value, member.type, depth)
            }
            return Keccak256.hash(bytes)
        }

        /// The 32 bytes of a value. EIP-712, encodeData.
        private mutating func word(_ value: JSON, _ type: String, _ depth: Int) throws(Malformed) -> [UInt8] {
            values += 1
            guard values <= TypedData.maximumValues else { throw Malformed("the message has too many values") }
            if let (element, count) = try Self.array(type) {
                guard depth < TypedData.maximumDepth else { throw Malformed("the message is nested too deeply") }
                guard let items = value.array, count == nil || count == items.count else {
                    throw Malformed("the length of an array does not match its type")
                }
                var bytes: [UInt8] = []
                for item in items { bytes += try word(item, element, depth + 1) }
                return Keccak256.hash(bytes)
            }
            if types[type] != nil { return try hash(value, of: type, depth + 1) }
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
