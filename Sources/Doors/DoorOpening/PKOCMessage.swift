// SPDX-License-Identifier: GPL-3.0-or-later
import Taps

/// A message of PKOC over Bluetooth: a list of values with a tag of one byte and a length.
package struct PKOCMessage: Sendable, Equatable {
    package enum Element: UInt8, Sendable, CaseIterable {
        case publicKey = 0x01
        case readerEphemeralKey = 0x02
        case signature = 0x03
        case response = 0x04
        case error = 0x06
        case deviceEphemeralKey = 0x07
        case lastUpdate = 0x09
        case protocolInformation = 0x0C
        case location = 0x0D
        case site = 0x0E
        case certificate = 0x10
        case encrypted = 0x40

        /// The lengths of the value that are accepted, in bytes.
        var counts: ClosedRange<Int> {
            switch self {
            case .publicKey, .deviceEphemeralKey: 65...65
            case .readerEphemeralKey: 33...33
            case .signature: 64...64
            case .response, .error: 1...1
            case .lastUpdate: 4...4
            case .protocolInformation: 0...16
            case .location, .site: 16...16
            case .certificate: ReaderCertificate.count...ReaderCertificate.count
            case .encrypted: 17...PKOCMessage.longest
            }
        }
    }

    /// How lengths above 127 are written. Up to 127 both forms are one byte.
    package enum Lengths: Sendable {
        /// One byte, up to 255; readers before 2.0.1.
        case plain
        /// 81 or 82 and one or two bytes. ISO 8825-1 8.1.3.
        case ber
    }

    /// The longest message in bytes. The longest one that PKOC defines has 223.
    package static let longest = 1024
    private static let mostValues = 24

    private var values: [Element: [UInt8]] = [:]

    /// Reads a message. Values with unknown tags are skipped.
    ///
    /// The form of the lengths is the one with which the values fill the whole message.
    /// - Throws: `.malformed` for left-over bytes, a tag that occurs twice, or a value of another length.
    package init(_ bytes: [UInt8]) throws(PKOCFailure) {
        guard !bytes.isEmpty, bytes.count <= Self.longest else { throw .malformed }
        guard let values = Self.values(bytes, .ber) ?? Self.values(bytes, .plain) else {
            throw .malformed
        }
        self.values = values
    }

    package subscript(tag: Element) -> [UInt8]? { values[tag] }

    private static func values(_ bytes: [UInt8], _ lengths: Lengths) -> [Element: [UInt8]]? {
        var values: [Element: [UInt8]] = [:]
        var position = 0
        var number = 0
        while position < bytes.count {
            number += 1
            guard number <= mostValues, bytes.count - position >= 2 else { return nil }
            let tag = Element(rawValue: bytes[position])
            position += 1
            guard let count = count(bytes, &position, lengths), count <= bytes.count - position else { return nil }
            let value = Array(bytes[position..<position + count])
            position += count
            guard let tag else { continue }
            guard tag.counts.contains(count), values.updateValue(value, forKey: tag) == nil else { return nil }
        }
        return values
    }

    private static func count(_ bytes: [UInt8], _ position: inout Int, _ lengths: Lengths) -> Int? {
        let first = bytes[position]
        position += 1
        guard first >= 0x80, lengths == .ber else { return Int(first) }
        let digits = Int(first) - 0x80
        guard (1...2).contains(digits), bytes.count - position >= digits else { return nil }
        let count = bytes[position..<position + digits].reduce(0) { $0 << 8 | Int($1) }
        position += digits
        // A longer form than necessary is not accepted.
        return count >= (digits == 1 ? 0x80 : 0x100) ? count : nil
    }

    /// Writes values in this order. No value is longer than 255 bytes.
    package static func encode(_ values: [(Element, [UInt8])], _ lengths: Lengths) -> [UInt8] {
        var out: [UInt8] = []
        for (tag, value) in values {
            out.append(tag.rawValue)
            if lengths == .ber, value.count >= 0x80 { out.append(0x81) }
            out.append(UInt8(truncatingIfNeeded: value.count))
            out += value
        }
        return out
    }
}
