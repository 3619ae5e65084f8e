// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// The records of an NDEF message that people use. NFC Forum NDEF 1.0.
package enum NDEFRecord: Sendable, Equatable {
    /// NFC Forum Text RTD 1.0.
    case text(String, language: String)
    /// NFC Forum URI RTD 1.0, or an absolute URI.
    case uri(String)
    /// Any other record; the name of its type, such as `text/vcard`.
    case other(String)
}

package struct NDEFMessage: Sendable, Equatable {
    /// The most bytes of a message that are read.
    package static let maximumBytes = 4096
    private static let maximumRecords = 64

    /// A smart poster is its records.
    package private(set) var records: [NDEFRecord] = []
    /// A phone offers to go on over another radio, as for a mobile document. NFC Forum Connection Handover 1.5, Tag NDEF
    /// Exchange Protocol 1.0.
    package private(set) var isHandover = false

    /// The records of a handover: select, request, mediation, initiate.
    private static let handoverTypes: Set<String> = ["Hs", "Hr", "Hm", "Hi"]
    /// The service of a handover that is negotiated, in a service parameter.
    private static let handoverService = Array("urn:nfc:sn:handover".utf8)

    private static let tooLong = Malformed("the message is too long")
    private static let wrongContent = Malformed("a record of a known type breaks its form")

    /// Reads a message; no bytes are a message without records.
    /// - Throws: `Malformed`; then no record counts.
    package init(_ bytes: some Collection<UInt8>) throws(Malformed) {
        guard bytes.count <= Self.maximumBytes else { throw Self.tooLong }
        try parse(Array(bytes), isPoster: false)
    }

    /// Adds the records of a message. A smart poster in a smart poster is not read.
    private mutating func parse(_ bytes: [UInt8], isPoster: Bool) throws(Malformed) {
        for record in try NDEFRecords.read(bytes) { try add(record, isPoster: isPoster) }
    }

    private mutating func add(_ record: NDEFRecords.Record, isPoster: Bool) throws(Malformed) {
        let name = record.name
        let payload = record.payload[...]
        guard records.count < Self.maximumRecords else { throw Self.tooLong }
        let typeText = String(decoding: record.type, as: UTF8.self)
        if name == .wellKnown, !isPoster {
            let isOffered = typeText == "Tp" && payload.dropFirst(2).starts(with: Self.handoverService)
            if isOffered || Self.handoverTypes.contains(typeText) { isHandover = true }
        }
        switch name {
        case .empty:
            guard record.type.isEmpty, payload.isEmpty, record.identifier.isEmpty else { throw Self.wrongContent }
        case .absoluteURI:
            guard let uri = String(validating: record.type, as: UTF8.self), !uri.isEmpty else {
                throw Self.wrongContent
            }
            records.append(.uri(uri))
        case .wellKnown where typeText == "T": records.append(try Self.text(payload))
        case .wellKnown where typeText == "U": records.append(try Self.uri(payload))
        case .wellKnown where typeText == "Sp" && !isPoster: try parse(record.payload, isPoster: true)
        // The parts of a smart poster that name an action are not reported.
        case .wellKnown where isPoster: break
        case .media where isPoster: break
        case .wellKnown, .media, .external: records.append(.other(typeText))
        case .unknown, .unchanged, .reserved: records.append(.other(""))
        }
    }

    /// Status byte (bit 8: UTF-16; bits 6 to 1: length of the language), language, text.
    private static func text(_ payload: ArraySlice<UInt8>) throws(Malformed) -> NDEFRecord {
        var rest = payload
        guard let status = rest.popFirst() else { throw Self.wrongContent }
        let count = Int(status & 0x3F)
        guard count > 0, rest.count >= count, let language = String(validating: rest.prefix(count), as: UTF8.self)
        else {
            throw Self.wrongContent
        }
        let content = rest.dropFirst(count)
        guard status & 0x80 != 0 else {
            guard let text = String(validating: content, as: UTF8.self) else { throw Self.wrongContent }
            return .text(text, language: language)
        }
        // Without a mark of the order the order is big-endian.
        guard content.count.isMultiple(of: 2) else { throw Self.wrongContent }
        let bytes = Array(content)
        var units = stride(from: 0, to: bytes.count, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        if units.first == 0xFFFE { units = units.map(\.byteSwapped) }
        if units.first == 0xFEFF { units.removeFirst() }
        guard let text = String(validating: units, as: UTF16.self) else { throw Self.wrongContent }
        return .text(text, language: language)
    }

    private static func uri(_ payload: ArraySlice<UInt8>) throws(Malformed) -> NDEFRecord {
        guard let code = payload.first, let rest = String(validating: payload.dropFirst(), as: UTF8.self),
            rest.utf8.allSatisfy({ $0 > 0x20 })
        else { throw Self.wrongContent }
        return .uri((Int(code) < prefixes.count ? prefixes[Int(code)] : "") + rest)
    }

    /// The abbreviations of NFC Forum URI RTD 1.0, table 3. Reserved codes count as 0, 3.2.2.
    private static let prefixes = [
        "", "http://www.", "https://www.", "http://", "https://", "tel:", "mailto:", "ftp://anonymous:anonymous@",
        "ftp://ftp.", "ftps://", "sftp://", "smb://", "nfs://", "ftp://", "dav://", "news:", "telnet://", "imap:",
        "rtsp://", "urn:", "pop:", "sip:", "sips:", "tftp:", "btspp://", "btl2cap://", "btgoep://", "tcpobex://",
        "irdaobex://", "file://", "urn:epc:id:", "urn:epc:tag:", "urn:epc:pat:", "urn:epc:raw:", "urn:epc:",
        "urn:nfc:",
    ]
}
