// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

extension ABI {
    /// Unpacks a value of a type.
    ///
    /// Numbers of 64 and 128 bits are texts, since many readers of JSON would round them.
    /// - Throws: `Malformed`, also for bytes after the value.
    package func unpack(_ bytes: [UInt8], as type: String) throws(Malformed) -> JSON {
        guard bytes.count <= PackWriter.maximumCount else { throw Malformed("the value is too large") }
        var unpacker = Unpacker(abi: self, reader: PackReader(bytes))
        let value = try unpacker.read(type, depth: 0)
        guard unpacker.reader.isAtEnd else { throw Malformed("there are bytes after the value") }
        return value
    }
}

/// Reads one value.
private struct Unpacker {
    let abi: ABI
    var reader: PackReader
    private var values = 0

    init(abi: ABI, reader: PackReader) { (self.abi, self.reader) = (abi, reader) }

    mutating func read(_ type: String, depth: Int) throws(Malformed) -> JSON {
        try count()
        guard depth <= ABI.maximumDepth else { throw Malformed("the value is nested too deeply") }
        switch try abi.meaning(of: type) {
        case .builtIn(let type): return try read(type)
        case .structure(let fields): return try readFields(fields, depth)
        case .variant(let types):
            let index = try reader.varuint()
            guard index < UInt32(types.count) else { throw Malformed("the variant has no type \(index)") }
            let name = types[Int(index)]
            return .array([.string(name), try read(name, depth: depth + 1)])
        case .optional(let inner):
            switch try reader.number(UInt8.self) {
            case 0: return .null
            case 1: return try read(inner, depth: depth + 1)
            default: throw Malformed("an optional value begins with neither 0 nor 1")
            }
        case .array(let inner): return .array(try read(try reader.varuint(), inner, depth))
        case .fixedArray(let inner, let count): return .array(try read(count, inner, depth))
        }
    }

    private mutating func count() throws(Malformed) {
        values += 1
        guard values <= ABI.maximumValues else { throw Malformed("the value is too large") }
    }

    private mutating func read(_ count: UInt32, _ type: String, _ depth: Int) throws(Malformed) -> [JSON] {
        var items: [JSON] = []
        for index in 0..<count {
            items.append(try Malformed.at("[\(index)]", read(type, depth: depth + 1)))
        }
        return items
    }

    private mutating func readFields(_ fields: [ABI.Field], _ depth: Int) throws(Malformed) -> JSON {
        var members: [JSON.Member] = []
        var places: [String: Int] = [:]
        for field in fields {
            // A field without a value takes time, too.
            guard !field.isExtension || !reader.isAtEnd else {
                try count()
                continue
            }
            try Malformed.at(field.name) { () throws(Malformed) in
                let value = try read(field.type, depth: depth + 1)
                // Nodes accept a struct that has a field twice, and give both the same value.
                if let first = places[field.name] {
                    guard members[first].value == value else { throw Malformed("the field occurs twice") }
                } else {
                    places[field.name] = members.count
                    members.append(JSON.Member(field.name, value))
                }
            }
        }
        return .object(members)
    }

    private mutating func read(_ type: BuiltIn) throws(Malformed) -> JSON {
        switch type {
        case .bool:
            switch try reader.number(UInt8.self) {
            case 0: return .bool(false)
            case 1: return .bool(true)
            default: throw Malformed("a bool is neither 0 nor 1")
            }
        case .int8: return .number(String(try reader.number(Int8.self)))
        case .int16: return .number(String(try reader.number(Int16.self)))
        case .int32: return .number(String(try reader.number(Int32.self)))
        case .int64: return .string(String(try reader.number(Int64.self)))
        case .int128: return .string(String(try reader.number(Int128.self)))
        case .uint8: return .number(String(try reader.number(UInt8.self)))
        case .uint16: return .number(String(try reader.number(UInt16.self)))
        case .uint32: return .number(String(try reader.number(UInt32.self)))
        case .uint64: return .string(String(try reader.number(UInt64.self)))
        case .uint128: return .string(String(try reader.number(UInt128.self)))
        case .varint32:
            let number = try reader.varuint()
            return .number(String(Int32(bitPattern: number >> 1) ^ -Int32(bitPattern: number & 1)))
        case .varuint32: return .number(String(try reader.varuint()))
        case .float32: return real(Float(bitPattern: try reader.number()))
        case .float64: return real(Double(bitPattern: try reader.number()))
        case .float128: return .string(Hex.encode(try reader.raw(16)))
        case .timePoint: return .string(AntelopeTime(microseconds: try reader.number()).text(decimals: 6))
        case .timePointSec: return .string(AntelopeTime(seconds: try reader.number()).text(decimals: 0))
        case .blockTimestamp: return .string(AntelopeTime(slot: try reader.number()).text(decimals: 3))
        case .name: return .string(AccountName(value: try reader.number()).description)
        case .bytes: return .string(Hex.encode(try reader.counted()))
        case .string: return .string(try reader.string())
        case .checksum160: return .string(Hex.encode(try reader.raw(20)))
        case .checksum256: return .string(Hex.encode(try reader.raw(32)))
        case .checksum512: return .string(Hex.encode(try reader.raw(64)))
        case .publicKey: return .string(try KeyText.read(&reader, .publicKey).description)
        case .signature: return .string(try KeyText.read(&reader, .signature).description)
        case .symbol: return .string(try TokenSymbol(value: try reader.number()).description)
        case .symbolCode: return .string(try SymbolCode(value: try reader.number()).description)
        case .asset: return .string(try readAsset().description)
        case .extendedAsset:
            let quantity = try readAsset()
            let contract = AccountName(value: try reader.number())
            return .object([
                JSON.Member("quantity", .string(quantity.description)),
                JSON.Member("contract", .string(contract.description)),
            ])
        case .bitset:
            let count = Int(try reader.varuint())
            let bytes = try reader.raw((count + 7) / 8)
            let bits = (0..<count).reversed().map { UInt8(ascii: "0") + (bytes[$0 / 8] >> UInt8($0 % 8) & 1) }
            return .string(String(decoding: bits, as: UTF8.self))
        }
    }

    private mutating func readAsset() throws(Malformed) -> Asset {
        let amount = try reader.number(Int64.self)
        return try Asset(amount: amount, symbol: TokenSymbol(value: try reader.number()))
    }

    /// A number; a text if JSON has no such number.
    private func real(_ value: some BinaryFloatingPoint & CustomStringConvertible) -> JSON {
        value.isFinite ? .number(value.description) : .string(value.description)
    }
}
