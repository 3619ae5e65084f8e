// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

extension ABI {
    /// Packs a value of a type, and proves that the bytes mean this value: unpacked again, they must be equal.
    ///
    /// A field that the type does not have is an error, because the packed value would not contain it. A binary
    /// extension may be left out only if nothing follows it in the packed value.
    /// - Throws: `Malformed` with the place of the fault, such as `quantity` or `items: [2]`.
    package func pack(_ value: JSON, as type: String) throws(Malformed) -> [UInt8] {
        var packer = Packer(abi: self)
        do throws(Malformed) {
            try packer.write(value, type, depth: 0)
        } catch {
            throw packer.path.reversed().reduce(error) { $0.at($1) }
        }
        let bytes = packer.writer.bytes
        if let omission = packer.omission, omission.position < bytes.count {
            let error = Malformed("only fields at the end of the data may be left out")
            throw omission.path.reversed().reduce(error) { $0.at($1) }
        }
        try compare(try unpack(bytes, as: type), with: value, as: type)
        return bytes
    }

    /// The maximum number of values of one packed value.
    static let maximumValues = 16_384
}

/// Writes one value.
private struct Packer {
    let abi: ABI
    var writer = PackWriter()
    /// The place of the value that is written, also after an error.
    private(set) var path: [String] = []
    /// The place of the first field that was left out, and the number of bytes before it.
    private(set) var omission: (path: [String], position: Int)?
    private var values = 0

    init(abi: ABI) { self.abi = abi }

    mutating func write(_ value: JSON, _ type: String, depth: Int) throws(Malformed) {
        try count()
        guard depth <= ABI.maximumDepth else { throw Malformed("the value is nested too deeply") }
        switch try abi.meaning(of: type) {
        case .builtIn(let type): try write(value, type)
        case .structure(let fields): try writeFields(value, fields, depth)
        case .variant(let types): try writeVariant(value, types, depth)
        case .optional(let inner):
            writer.number(UInt8(value == .null ? 0 : 1))
            if value != .null { try write(value, inner, depth: depth + 1) }
        case .array(let inner):
            guard let items = value.array else { throw Malformed("expected an array") }
            writer.varuint(UInt32(truncatingIfNeeded: items.count))
            try write(items, inner, depth)
        case .fixedArray(let inner, let count):
            guard let items = value.array, items.count == Int(count) else {
                throw Malformed("expected an array with \(count) elements")
            }
            try write(items, inner, depth)
        }
    }

    private mutating func count() throws(Malformed) {
        values += 1
        guard values <= ABI.maximumValues, writer.bytes.count <= PackWriter.maximumCount else {
            throw Malformed("the value is too large")
        }
    }

    private mutating func write(_ items: [JSON], _ type: String, _ depth: Int) throws(Malformed) {
        for (index, item) in items.enumerated() {
            path.append("[\(index)]")
            try write(item, type, depth: depth + 1)
            path.removeLast()
        }
    }

    private mutating func writeFields(_ value: JSON, _ fields: [ABI.Field], _ depth: Int) throws(Malformed) {
        guard let members = value.members else { throw Malformed("expected an object") }
        var byName: [String: JSON] = [:]
        for member in members {
            guard byName.updateValue(member.value, forKey: member.key) == nil else {
                throw Malformed("the field '\(member.key.prefix(64))' occurs twice")
            }
        }
        for field in fields {
            guard let value = byName[field.name] else {
                guard field.isExtension else { throw Malformed("the field '\(field.name)' is missing") }
                omission = omission ?? (path + [field.name], writer.bytes.count)
                // A field without a value takes time, too.
                try count()
                continue
            }
            path.append(field.name)
            try write(value, field.type, depth: depth + 1)
            path.removeLast()
        }
        for field in fields { byName[field.name] = nil }
        if let extra = byName.keys.min() { throw Malformed("there is no field '\(extra.prefix(64))'") }
    }

    private mutating func writeVariant(_ value: JSON, _ types: [String], _ depth: Int) throws(Malformed) {
        guard let pair = value.array, pair.count == 2, let name = pair[0].string else {
            throw Malformed("expected a variant: [\"type\", value]")
        }
        guard let index = types.firstIndex(of: name) else {
            throw Malformed("'\(name.prefix(64))' is not a type of this variant")
        }
        writer.varuint(UInt32(truncatingIfNeeded: index))
        try write(pair[1], types[index], depth: depth + 1)
    }

    private mutating func write(_ value: JSON, _ type: BuiltIn) throws(Malformed) {
        switch type {
        case .bool:
            switch value {
            case .bool(let flag): writer.number(UInt8(flag ? 1 : 0))
            case .number("0"): writer.number(UInt8(0))
            case .number("1"): writer.number(UInt8(1))
            default: throw Malformed("expected true or false")
            }
        case .int8: writer.number(try number(value) as Int8)
        case .int16: writer.number(try number(value) as Int16)
        case .int32: writer.number(try number(value) as Int32)
        case .int64: writer.number(try number(value) as Int64)
        case .int128: writer.number(try number(value) as Int128)
        case .uint8: writer.number(try number(value) as UInt8)
        case .uint16: writer.number(try number(value) as UInt16)
        case .uint32: writer.number(try number(value) as UInt32)
        case .uint64: writer.number(try number(value) as UInt64)
        case .uint128: writer.number(try number(value) as UInt128)
        case .varint32:
            let number: Int32 = try number(value)
            writer.varuint(UInt32(bitPattern: (number << 1) ^ (number >> 31)))
        case .varuint32: writer.varuint(try number(value))
        case .float32: writer.number(Float(try real(value)).bitPattern)
        case .float64: writer.number(try real(value).bitPattern)
        case .float128: writer.raw(try bytes(value, count: 16))
        case .timePoint: writer.number(try AntelopeTime(text(value)).microseconds)
        case .timePointSec: writer.number(try AntelopeTime(text(value)).seconds)
        case .blockTimestamp: writer.number(try AntelopeTime(text(value)).slot)
        case .name: writer.number(try AccountName(text(value)).value)
        case .bytes: writer.counted(try bytes(value, count: nil))
        case .string: writer.counted(Array(try text(value).utf8))
        case .checksum160: writer.raw(try bytes(value, count: 20))
        case .checksum256: writer.raw(try bytes(value, count: 32))
        case .checksum512: writer.raw(try bytes(value, count: 64))
        case .publicKey: try KeyText(text(value), .publicKey).write(to: &writer)
        case .signature: try KeyText(text(value), .signature).write(to: &writer)
        case .symbol: writer.number(try TokenSymbol(text(value)).value)
        case .symbolCode: writer.number(try SymbolCode(text(value)).value)
        case .asset: write(try Asset(text(value)))
        case .extendedAsset:
            guard let quantity = value["quantity"]?.string, let contract = value["contract"]?.string,
                value.members?.count == 2
            else { throw Malformed("expected an object with quantity and contract") }
            write(try Asset(quantity))
            writer.number(try AccountName(contract).value)
        case .bitset:
            // The last character is the lowest bit of the first byte.
            let bits = Array(try text(value).utf8.reversed())
            guard bits.count <= PackWriter.maximumCount, bits.allSatisfy({ $0 == 0x30 || $0 == 0x31 }) else {
                throw Malformed("expected binary digits")
            }
            writer.varuint(UInt32(bits.count))
            for start in stride(from: 0, to: bits.count, by: 8) {
                writer.number(bits[start...].prefix(8).reversed().reduce(UInt8(0)) { $0 << 1 | ($1 & 1) })
            }
        }
    }

    private mutating func write(_ asset: Asset) {
        writer.number(asset.amount)
        writer.number(asset.symbol.value)
    }

    private func text(_ value: JSON) throws(Malformed) -> String {
        guard let text = value.string else { throw Malformed("expected a string") }
        return text
    }

    /// A whole number, as a number or as a text.
    private func number<Number: FixedWidthInteger>(_ value: JSON) throws(Malformed) -> Number {
        let digits: String
        switch value {
        case .number(let text), .string(let text): digits = text
        default: throw Malformed("expected a number")
        }
        guard digits.utf8.count <= 64, !digits.hasPrefix("+"), let number = Number(digits) else {
            throw Malformed("'\(digits.prefix(64))' is not a whole number from \(Number.min) to \(Number.max)")
        }
        return number
    }

    private func real(_ value: JSON) throws(Malformed) -> Double {
        switch value {
        case .number(let text), .string(let text):
            guard text.utf8.count <= 64, let number = Double(text), number.isFinite else { break }
            return number
        default: break
        }
        throw Malformed("expected a number")
    }

    private func bytes(_ value: JSON, count: Int?) throws(Malformed) -> [UInt8] {
        guard let bytes = Hex.decode(try text(value), limit: PackWriter.maximumCount) else {
            throw Malformed("expected hexadecimal digits")
        }
        if let count, count != bytes.count { throw Malformed("expected \(count) bytes") }
        return bytes
    }
}
