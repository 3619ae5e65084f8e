// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The description of a contract: its types and actions. Only what packing needs is kept.
package struct ABI: Sendable {
    struct Field: Sendable {
        let name: String
        /// The type without the `$` of a binary extension.
        let type: String
        /// Whether the field is a binary extension: older data end before it.
        let isExtension: Bool

        init(name: String, type: String) {
            self.name = name
            isExtension = type.utf8.last == UInt8(ascii: "$")
            self.type = isExtension ? String(type.dropLast()) : type
        }
    }

    struct Structure: Sendable {
        let base: String
        let fields: [Field]
    }

    /// The parts of an ABI, in either form. A name that is missing or malformed is empty; see `name`.
    struct Parts {
        var version = ""
        var aliases: [(name: String, type: String)] = []
        var structures: [(name: String, base: String, fields: [Field])] = []
        var actions: [(name: AccountName, type: String)] = []
        var variants: [(name: String, types: [String])] = []
    }

    /// The maximum number of bytes of an ABI.
    package static let maximumCount = 512 * 1024
    /// The maximum number of types, fields and actions together.
    static let maximumEntries = 10_000
    /// The maximum number of steps from an alias to its type and from a struct to its last base, and the maximum
    /// nesting of values.
    static let maximumDepth = 32
    /// The maximum number of bytes of a name of a type.
    static let maximumNameCount = 256
    /// The maximum number of bytes of a name with brackets.
    private static let maximumTypeCount = 512

    private var aliases: [String: String] = [:]
    private var structures: [String: Structure] = [:]
    private var variants: [String: [String]] = [:]
    private var actions: [AccountName: String] = [:]
    /// The types that the ABI defines twice, in a way that nodes refuse.
    private var contradictions: Set<String> = []
    private var repeatedActions: Set<AccountName> = []

    /// Takes the parts of an ABI. A fault in a type is an error only where the type is used.
    init(_ parts: Parts) throws(Malformed) {
        guard parts.version.hasPrefix("eosio::abi/1.") else {
            throw Malformed("the version '\(parts.version.prefix(32))' of the ABI is unknown")
        }
        let fields =
            parts.structures.reduce(0) { $0 + $1.fields.count } + parts.variants.reduce(0) { $0 + $1.types.count }
        let types = parts.aliases.count + parts.structures.count + parts.variants.count
        guard fields + types + parts.actions.count <= Self.maximumEntries else {
            throw Malformed("the ABI has too many entries")
        }
        for structure in parts.structures where Self.isName(structure.name) {
            let new = Structure(base: structure.base, fields: structure.fields)
            if structures.updateValue(new, forKey: structure.name) != nil { contradictions.insert(structure.name) }
        }
        for alias in parts.aliases where Self.isName(alias.name) {
            let isKnown = structures[alias.name] != nil || BuiltIn(rawValue: alias.name) != nil
            let isRepeated = aliases.updateValue(alias.type, forKey: alias.name) != nil
            if isKnown || isRepeated { contradictions.insert(alias.name) }
        }
        for variant in parts.variants where Self.isName(variant.name) {
            if variants.updateValue(variant.types, forKey: variant.name) != nil { contradictions.insert(variant.name) }
        }
        for action in parts.actions where actions.updateValue(action.type, forKey: action.name) != nil {
            repeatedActions.insert(action.name)
        }
    }

    private static func isName(_ name: String) -> Bool { (1...maximumNameCount).contains(name.utf8.count) }

    /// The name of a type or a field; empty for one that cannot be used: it is not ASCII, or too long.
    static func name(_ text: String) -> String { text.utf8.count <= maximumTypeCount && text.isASCII ? text : "" }

    /// The type of an action's data; nil if the contract has no such action.
    package func type(of action: AccountName) throws(Malformed) -> String? {
        guard !repeatedActions.contains(action) else { throw Malformed("the ABI has the action '\(action)' twice") }
        return actions[action]
    }

    // MARK: Types

    /// What the name of a type means.
    enum Meaning {
        case builtIn(BuiltIn)
        case structure([Field])
        case variant([String])
        case optional(String)
        case array(String)
        /// An array with a fixed number of elements, of ABI 1.3.
        case fixedArray(String, count: UInt32)
    }

    /// Finds what a type means, through all aliases.
    ///
    /// The order is that of nodes: a built-in type comes before a variant or a struct with its name. The C++ functions
    /// are abi_serializer::resolve_type and _variant_to_binary.
    func meaning(of type: String) throws(Malformed) -> Meaning {
        let name = try resolve(type)
        if name.utf8.last == UInt8(ascii: "?") { return .optional(String(name.dropLast())) }
        if let array = Self.array(name) { return array }
        if let type = BuiltIn(rawValue: name) { return .builtIn(type) }
        if let types = variants[name] {
            guard (1...255).contains(types.count) else {
                throw Malformed("the variant '\(name.prefix(64))' of the ABI has no types, or too many types")
            }
            return .variant(types)
        }
        guard structures[name] != nil else { throw Malformed("the ABI has no type '\(name.prefix(64))'") }
        return .structure(try fields(of: name))
    }

    /// Follows the aliases of a type.
    private func resolve(_ type: String) throws(Malformed) -> String {
        var name = type
        for _ in 0..<Self.maximumDepth {
            guard !contradictions.contains(name) else {
                throw Malformed("the ABI has the type '\(name.prefix(64))' twice")
            }
            guard let next = aliases[name] else { return name }
            name = next
        }
        throw Malformed("the type '\(type.prefix(64))' of the ABI forms a cycle, or is nested too deeply")
    }

    /// Reads a name such as `T[]` or `T[3]`; nil for another one.
    private static func array(_ name: String) -> Meaning? {
        guard name.utf8.last == UInt8(ascii: "]"), let open = name.utf8.lastIndex(of: UInt8(ascii: "[")) else {
            return nil
        }
        let (inner, digits) = (String(name[..<open]), name[open...].dropFirst().dropLast())
        if digits.isEmpty { return .array(inner) }
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = UInt32(digits) else { return nil }
        return .fixedArray(inner, count: count)
    }

    /// The fields of a struct, those of its bases first. A base may be an alias of a struct.
    private func fields(of name: String) throws(Malformed) -> [Field] {
        var all: [Field] = []
        var next = name
        for _ in 0..<Self.maximumDepth {
            guard let structure = structures[next] else {
                throw Malformed("the base '\(next.prefix(64))' of '\(name.prefix(64))' is not a struct of the ABI")
            }
            all = structure.fields + all
            if structure.base.isEmpty { return all }
            next = try resolve(structure.base)
        }
        throw Malformed("the bases of '\(name.prefix(64))' form a cycle, or are nested too deeply")
    }
}

/// The types that each ABI has.
enum BuiltIn: String {
    case bool
    case int8, int16, int32, int64, int128
    case uint8, uint16, uint32, uint64, uint128
    case varint32, varuint32
    case float32, float64, float128
    case timePoint = "time_point"
    case timePointSec = "time_point_sec"
    case blockTimestamp = "block_timestamp_type"
    case name, bytes, string
    case checksum160, checksum256, checksum512
    case publicKey = "public_key"
    case signature
    case symbol
    case symbolCode = "symbol_code"
    case asset
    case extendedAsset = "extended_asset"
    case bitset
}
