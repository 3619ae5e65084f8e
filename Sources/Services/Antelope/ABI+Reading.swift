// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

extension ABI {
    private static let missing = Malformed("the account has no contract")

    /// Reads the packed form, as get_raw_abi has it. The C++ struct is abi_def.
    package init(packed bytes: [UInt8]) throws(Malformed) {
        guard !bytes.isEmpty else { throw Self.missing }
        guard bytes.count <= Self.maximumCount else { throw Malformed("the ABI is too large") }
        var reader = PackReader(bytes)
        var parts = Parts()
        parts.version = try Self.name(&reader)
        parts.aliases = try Self.list(&reader) { reader throws(Malformed) in
            (try Self.name(&reader), try Self.name(&reader))
        }
        parts.structures = try Self.list(&reader) { reader throws(Malformed) in
            let (name, base) = (try Self.name(&reader), try Self.name(&reader))
            let fields = try Self.list(&reader) { reader throws(Malformed) in
                Field(name: try Self.name(&reader), type: try Self.name(&reader))
            }
            return (name, base, fields)
        }
        parts.actions = try Self.list(&reader) { reader throws(Malformed) in
            let action = (AccountName(value: try reader.number()), try Self.name(&reader))
            // The Ricardian contract.
            _ = try reader.counted()
            return action
        }
        // Tables, Ricardian clauses, texts of errors and extensions come before the variants.
        _ = try Self.list(&reader) { reader throws(Malformed) in
            _ = try reader.number(UInt64.self)
            _ = try reader.counted()
            for _ in 0..<2 { try Self.skipList(&reader, number: 0, texts: 1) }
            _ = try reader.counted()
        }
        try Self.skipList(&reader, number: 0, texts: 2)
        try Self.skipList(&reader, number: 8, texts: 1)
        try Self.skipList(&reader, number: 2, texts: 1)
        // ABIs of version 1.0 end here. The parts after the variants in newer versions are not needed.
        if !reader.isAtEnd {
            parts.variants = try Self.list(&reader) { reader throws(Malformed) in
                let name = try Self.name(&reader)
                return (name, try Self.list(&reader, Self.name))
            }
        }
        try self.init(parts)
    }

    /// Reads the name of a type or a field. A name that is not UTF-8 is empty, and cannot be used.
    private static func name(_ reader: inout PackReader) throws(Malformed) -> String {
        name(String(validating: try reader.counted(), as: UTF8.self) ?? "")
    }

    /// Skips a list, each of whose entries is a number of so many bytes, and texts.
    private static func skipList(_ reader: inout PackReader, number: Int, texts: Int) throws(Malformed) {
        _ = try list(&reader) { reader throws(Malformed) in
            _ = try reader.raw(number)
            for _ in 0..<texts { _ = try reader.counted() }
        }
    }

    private static func list<T>(
        _ reader: inout PackReader,
        _ element: (inout PackReader) throws(Malformed) -> T
    ) throws(Malformed) -> [T] {
        let count = try reader.varuint()
        guard count <= UInt32(maximumEntries), count <= UInt32(clamping: reader.count) else {
            throw Malformed("a list of the ABI is too long")
        }
        var all: [T] = []
        for _ in 0..<count { all.append(try element(&reader)) }
        return all
    }

    /// Reads the form in JSON, as `abi` in the answer to get_abi.
    package init(_ json: JSON) throws(Malformed) {
        guard json != .null else { throw Self.missing }
        guard json.members != nil else { throw Malformed("the ABI is not an object") }
        var parts = Parts()
        parts.version = Self.text(json, "version")
        parts.aliases = try Self.list(json, "types") { item in
            (Self.text(item, "new_type_name"), Self.text(item, "type"))
        }
        parts.structures = try Self.list(json, "structs") { item throws(Malformed) in
            let fields = try Self.list(item, "fields") { field in
                let name = Self.text(field, "name")
                return Field(name: name, type: name.isEmpty ? "" : Self.text(field, "type"))
            }
            return (Self.text(item, "name"), Self.text(item, "base"), fields)
        }
        parts.actions = try Self.list(json, "actions") { item in
            // An action with a malformed name cannot be called.
            (try? AccountName(Self.text(item, "name"))).map { ($0, Self.text(item, "type")) }
        }.compactMap { $0 }
        parts.variants = try Self.list(json, "variants") { item throws(Malformed) in
            let types = try Self.list(item, "types") { Self.name($0.string ?? "") }
            return (Self.text(item, "name"), types)
        }
        try self.init(parts)
    }

    /// A name; empty if it is missing or not a string.
    private static func text(_ json: JSON, _ name: String) -> String { Self.name(json[name]?.string ?? "") }

    /// Reads a list, which may be missing.
    private static func list<T>(
        _ json: JSON,
        _ name: String,
        _ element: (JSON) throws(Malformed) -> T
    ) throws(Malformed) -> [T] {
        guard let value = json[name], value != .null else { return [] }
        guard let items = value.array, items.count <= maximumEntries else {
            throw Malformed("'\(name)' of the ABI is not a list, or is too long")
        }
        var all: [T] = []
        for item in items { all.append(try element(item)) }
        return all
    }
}
