// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The records of an NDEF message as they stand there. NFC Forum NDEF 1.0.
package enum NDEFRecords {
    /// What the type of a record is: TNF. NDEF 1.0, 3.2.6.
    package enum Name: UInt8, Sendable {
        case empty, wellKnown, media, absoluteURI, external, unknown, unchanged, reserved
    }

    /// A record; chunks are put together.
    package struct Record: Sendable, Equatable {
        package var name: Name
        package var type: [UInt8]
        package var identifier: [UInt8]
        package var payload: [UInt8]

        package init(_ name: Name, _ type: String, id: String = "", _ payload: [UInt8]) {
            self.init(name, type: Array(type.utf8), identifier: Array(id.utf8), payload)
        }

        fileprivate init(_ name: Name, type: [UInt8], identifier: [UInt8], _ payload: [UInt8]) {
            self.name = name
            self.type = type
            self.identifier = identifier
            self.payload = payload
        }

        /// Whether the record has this type.
        package func isType(_ name: Name, _ type: String) -> Bool {
            self.name == name && self.type.elementsEqual(type.utf8)
        }
    }

    private static let truncated = Malformed("the message is truncated")
    private static let wrongOrder = Malformed("the flags for the first and the last record are wrong")
    private static let wrongChunk = Malformed("a chunk begins or ends where none can")

    /// Reads a message; no bytes are a message without records. The caller bounds its length.
    package static func read(_ bytes: [UInt8]) throws(Malformed) -> [Record] {
        var records: [Record] = []
        var rest = bytes[...]
        var isOver = rest.isEmpty
        /// The record whose chunks are not complete.
        var chunked: Record?
        while !rest.isEmpty {
            guard !isOver else { throw Malformed("bytes follow the last record") }
            let isFirst = rest.startIndex == bytes.startIndex
            let flags = try byte(&rest)
            guard (flags & 0x80 != 0) == isFirst else { throw wrongOrder }
            isOver = flags & 0x40 != 0
            let isChunk = flags & 0x20 != 0
            let name = Name(rawValue: flags & 0x07) ?? .reserved
            let typeCount = Int(try byte(&rest))
            var payloadCount = 0
            for _ in 0..<(flags & 0x10 != 0 ? 1 : 4) { payloadCount = payloadCount << 8 | Int(try byte(&rest)) }
            let identifierCount = flags & 0x08 != 0 ? Int(try byte(&rest)) : 0
            let type = try part(typeCount, of: &rest)
            let identifier = try part(identifierCount, of: &rest)
            let payload = try part(payloadCount, of: &rest)
            if chunked != nil {
                guard name == .unchanged, type.isEmpty, identifierCount == 0 else { throw wrongChunk }
                chunked?.payload += payload
            } else {
                guard name != .unchanged else { throw wrongChunk }
                chunked = Record(name, type: Array(type), identifier: Array(identifier), Array(payload))
            }
            if !isChunk, let record = chunked {
                records.append(record)
                chunked = nil
            }
        }
        guard chunked == nil else { throw wrongChunk }
        guard isOver else { throw wrongOrder }
        return records
    }

    /// Writes a message, each record in its shortest form.
    package static func encode(_ records: [Record]) -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, record) in records.enumerated() {
            var flags = record.name.rawValue
            if index == 0 { flags |= 0x80 }
            if index == records.count - 1 { flags |= 0x40 }
            if record.payload.count < 256 { flags |= 0x10 }
            if !record.identifier.isEmpty { flags |= 0x08 }
            bytes += [flags, UInt8(clamping: record.type.count)]
            bytes += withUnsafeBytes(of: UInt32(clamping: record.payload.count).bigEndian) { Array($0) }
                .dropFirst(record.payload.count < 256 ? 3 : 0)
            if !record.identifier.isEmpty { bytes.append(UInt8(clamping: record.identifier.count)) }
            bytes += record.type + record.identifier + record.payload
        }
        return bytes
    }

    private static func byte(_ rest: inout ArraySlice<UInt8>) throws(Malformed) -> UInt8 {
        guard let byte = rest.popFirst() else { throw truncated }
        return byte
    }

    private static func part(_ count: Int, of rest: inout ArraySlice<UInt8>) throws(Malformed) -> ArraySlice<UInt8> {
        guard rest.count >= count else { throw truncated }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }
}
