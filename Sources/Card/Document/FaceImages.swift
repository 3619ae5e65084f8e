// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// A picture of a data group, as the chip has it.
package struct DocumentImage: Sendable, Equatable {
    package enum Format: String, Sendable {
        case jpeg
        /// JPEG 2000 in a JP2 file.
        case jp2
        /// A bare codestream of JPEG 2000.
        case jpeg2000 = "j2k"
        case unknown

        /// Tells the format by the first bytes, since the byte of the record is wrong in some documents.
        init(_ bytes: some Collection<UInt8>) {
            if bytes.starts(with: [0xFF, 0xD8, 0xFF]) {
                self = .jpeg
            } else if bytes.starts(with: [0x00, 0x00, 0x00, 0x0C, 0x6A, 0x50, 0x20, 0x20]) {
                self = .jp2
            } else if bytes.starts(with: [0xFF, 0x4F, 0xFF, 0x51]) {
                self = .jpeg2000
            } else {
                self = .unknown
            }
        }
    }

    package let format: Format
    /// In pixels, as the record says; nil if it says nothing.
    package let width: Int?
    package let height: Int?
    package let data: [UInt8]

    package init(_ data: [UInt8], width: Int? = nil, height: Int? = nil) {
        self.data = data
        format = Format(data)
        self.width = width
        self.height = height
    }
}

/// The pictures of the face: DG2. ICAO 9303-10 4.7.2, ISO/IEC 19794-5, ISO/IEC 39794-5.
package struct FaceImages: Sendable, Equatable {
    package let images: [DocumentImage]

    /// The maximum number of templates and of faces in one of them. Documents have one of each.
    private static let maximumCount = 16

    /// Reads the file.
    /// - Throws: `Malformed`.
    package init(_ file: [UInt8]) throws(Malformed) {
        let object = try BERTLV(startOf: file)
        guard object.tag == 0x75, let group = BERTLV.readable(object.value).first(where: { $0.tag == 0x7F61 }) else {
            throw .invalidTag
        }
        var images: [DocumentImage] = []
        for template in BERTLV.readable(group.value).prefix(Self.maximumCount + 1) where template.tag == 0x7F60 {
            // Either tag may have either form. A record that cannot be read does not hide the others.
            for record in BERTLV.readable(template.value) where record.tag == 0x5F2E || record.tag == 0x7F2E {
                images += (try? Self.record(record.value)) ?? Self.encoded(record)
            }
        }
        guard !images.isEmpty else { throw .truncated }
        self.images = Array(images.prefix(Self.maximumCount))
    }

    /// The pictures of a facial record. Its lengths are wrong in some documents; the data object bounds it.
    /// ISO/IEC 19794-5:2005 5.3 to 5.7.
    private static func record(_ bytes: [UInt8]) throws(Malformed) -> [DocumentImage] {
        var cursor = Cursor(bytes[...])
        guard cursor.read(4).map(Array.init) == Array("FAC\0".utf8) else {
            // Not a record of this standard: a picture alone, if it is one.
            let image = DocumentImage(bytes)
            guard image.format != .unknown else { throw .invalidTag }
            return [image]
        }
        guard cursor.read(4) != nil, cursor.number(4) != nil, let count = cursor.number(2) else { throw .truncated }
        var images: [DocumentImage] = []
        for index in 0..<min(max(count, 1), maximumCount) {
            let start = cursor
            guard let length = cursor.number(4), let points = cursor.number(2), cursor.read(14) != nil,
                cursor.read(8 * points) != nil, cursor.read(2) != nil, let width = cursor.number(2),
                let height = cursor.number(2), cursor.read(6) != nil
            else {
                guard index > 0 else { throw .truncated }
                break
            }
            let used = cursor.position - start.position
            let isLast = index == count - 1
            // If the length of its block is wrong, the last picture gets the rest.
            let rest = cursor.remaining
            let announced = length - used
            let size = announced > 0 && announced <= rest && !(isLast && announced < rest) ? announced : rest
            guard size > 0, let data = cursor.read(size) else {
                guard index > 0 else { throw .truncated }
                break
            }
            images.append(DocumentImage(Array(data), width: width, height: height))
        }
        return images
    }

    /// The picture in a record of ISO/IEC 39794-5: the octet string that begins as a picture does, or as a record.
    private static func encoded(_ record: BERTLV) -> [DocumentImage] {
        var level = BERTLV.readable(record.value)
        for _ in 0..<16 where !level.isEmpty {
            let values = level.prefix(256)
            for object in values where !object.isConstructed {
                if let images = try? Self.record(object.value), images.first?.format != .unknown { return images }
            }
            level = values.filter(\.isConstructed).flatMap { BERTLV.readable($0.value) }
        }
        return []
    }
}

/// The pictures of the signature or usual mark: DG7. ICAO 9303-10 4.7.7.
package struct SignatureImages: Sendable, Equatable {
    package let images: [DocumentImage]

    /// Reads the file.
    /// - Throws: `Malformed`.
    package init(_ file: [UInt8]) throws(Malformed) {
        let object = try BERTLV(startOf: file)
        guard object.tag == 0x67 else { throw .invalidTag }
        images = BERTLV.readable(object.value).prefix(16).filter { $0.tag == 0x5F43 }.map { DocumentImage($0.value) }
        guard !images.isEmpty else { throw .truncated }
    }
}

/// Reads big-endian numbers and runs of bytes.
private struct Cursor {
    private let bytes: ArraySlice<UInt8>
    private(set) var position: Int

    init(_ bytes: ArraySlice<UInt8>) { (self.bytes, position) = (bytes, bytes.startIndex) }

    var remaining: Int { bytes.endIndex - position }

    mutating func read(_ count: Int) -> ArraySlice<UInt8>? {
        guard count >= 0, count <= remaining else { return nil }
        defer { position += count }
        return bytes[position..<position + count]
    }

    mutating func number(_ count: Int) -> Int? { read(count)?.reduce(0) { $0 << 8 | Int($1) } }
}
