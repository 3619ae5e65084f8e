// SPDX-License-Identifier: GPL-3.0-or-later

/// The description of a contract: its types and actions. Only what packing needs is kept.
package struct ABI: Sendable {
    struct Field: Sendable {
        let name: String
        let type: String
    }

    struct Structure: Sendable {
        let base: String
        let fields: [Field]
    }

    /// The parts of an ABI, in either form.
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
    /// The maximum number of bytes of a name of a type or a field.
    static let maximumNameCount = 256

    private var aliases: [String: String] = [:]
    private var structures: [String: Structure] = [:]
    private var variants: [String: [String]] = [:]
    private var actions: [AccountName: String] = [:]

    init(_ parts: Parts) throws(AntelopeError) {
        guard parts.version.hasPrefix("eosio::abi/1.") else {
            throw AntelopeError("the version '\(parts.version.prefix(32))' of the ABI is unknown")
        }
        let fields =
            parts.structures.reduce(0) { $0 + $1.fields.count } + parts.variants.reduce(0) { $0 + $1.types.count }
        let types = parts.aliases.count + parts.structures.count + parts.variants.count
        guard fields + types + parts.actions.count <= Self.maximumEntries else {
            throw AntelopeError("the ABI has too many entries")
        }
        for alias in parts.aliases {
            try checkNew(alias.name)
            aliases[alias.name] = alias.type
        }
        for structure in parts.structures {
            try checkNew(structure.name)
            structures[structure.name] = Structure(base: structure.base, fields: structure.fields)
        }
        for variant in parts.variants {
            try checkNew(variant.name)
            guard (1...255).contains(variant.types.count) else {
                throw AntelopeError("the variant '\(variant.name)' has no types, or too many types")
            }
            variants[variant.name] = variant.types
        }
        for action in parts.actions {
            guard actions.updateValue(action.type, forKey: action.name) == nil else {
                throw AntelopeError("the action '\(action.name)' occurs twice")
            }
        }
        // An unknown type is an error only where it is used. The rest of the contract stays usable.
        for name in structures.keys { try checkBases(of: name) }
    }

    /// The type of an action's data; nil if the contract has no such action.
    package func type(of action: AccountName) -> String? { actions[action] }

    // MARK: Checks

    private func checkNew(_ name: String) throws(AntelopeError) {
        guard !name.isEmpty, name.utf8.count <= Self.maximumNameCount else {
            throw AntelopeError("the name of a type is empty or too long")
        }
        guard aliases[name] == nil, structures[name] == nil, variants[name] == nil, BuiltIn(rawValue: name) == nil
        else { throw AntelopeError("the type '\(name)' occurs twice") }
    }

    private func checkBases(of name: String) throws(AntelopeError) {
        var base = structures[name]?.base ?? ""
        for _ in 0..<Self.maximumDepth {
            if base.isEmpty { return }
            guard let next = structures[base] else {
                throw AntelopeError("the base '\(base.prefix(64))' of '\(name)' is not a struct")
            }
            base = next.base
        }
        throw AntelopeError("the bases of '\(name)' form a cycle, or are nested too deeply")
    }

    // MARK: Types

    /// What the name of a type means.
    enum Meaning {
        case builtIn(BuiltIn)
        case structure(String)
        case variant([String])
        case optional(String)
        case array(String)
        /// A field at the end of a struct that older data do not have.
        case binaryExtension(String)
    }

    /// Finds what a type means, through all aliases.
    func meaning(of type: String) throws(AntelopeError) -> Meaning {
        var name = type
        for _ in 0..<Self.maximumDepth {
            if name.hasSuffix("$") { return .binaryExtension(String(name.dropLast())) }
            if name.hasSuffix("?") { return .optional(String(name.dropLast())) }
            if name.hasSuffix("[]") { return .array(String(name.dropLast(2))) }
            if let type = BuiltIn(rawValue: name) { return .builtIn(type) }
            if structures[name] != nil { return .structure(name) }
            if let types = variants[name] { return .variant(types) }
            guard let next = aliases[name] else { throw AntelopeError("the type '\(name.prefix(64))' is unknown") }
            name = next
        }
        throw AntelopeError("the type '\(type.prefix(64))' forms a cycle, or is nested too deeply")
    }

    /// The fields of a struct, those of its bases first.
    func fields(of name: String) -> [Field] {
        var all: [Field] = []
        var next = name
        while let structure = structures[next] {
            all = structure.fields + all
            next = structure.base
        }
        return all
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
}
