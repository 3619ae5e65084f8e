// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Text

/// Finds CV certificates in bytes of any format: in DER, or as hexadecimal digits.
///
/// Digits may have spaces, line ends and colons between them. So the search also reads the configuration files and
/// resources of other programs.
package struct CertificateSearch: Sendable, Equatable {
    /// The certificates in the order of their places.
    package private(set) var certificates: [CVCertificate] = []
    /// Why the first object that looks like a certificate is not one; nil: there was no such object.
    package private(set) var firstFault: String?

    /// The maximum number of certificates of one search; the search then ends.
    package static let maximumCount = 1000
    /// The maximum number of objects that look like certificates but are not.
    private static let maximumFaults = 10_000

    package init(_ bytes: [UInt8]) {
        var position = 0
        var faults = 0
        while position < bytes.count, certificates.count < Self.maximumCount, faults < Self.maximumFaults {
            let candidate: (bytes: [UInt8], length: Int)? =
                switch bytes[position] {
                case 0x7F: Self.encoded(bytes, at: position)
                case UInt8(ascii: "7"): Self.digits(bytes, at: position)
                default: nil
                }
            guard let candidate else {
                position += 1
                continue
            }
            do throws(Malformed) {
                certificates.append(try CVCertificate(candidate.bytes))
                position += candidate.length
            } catch {
                if firstFault == nil { firstFault = "\(error)" }
                faults += 1
                position += 1
            }
        }
    }

    /// The length of the object 7F21 that begins with these bytes; nil when no certificate begins so.
    private static func length(_ bytes: some RandomAccessCollection<UInt8>) -> Int? {
        let start = Array(bytes.prefix(7))
        guard start.count == 7, start[0] == 0x7F, start[1] == 0x21 else { return nil }
        let (header, content): (Int, Int)
        switch start[2] {
        case 0..<0x80: (header, content) = (3, Int(start[2]))
        case 0x81: (header, content) = (4, Int(start[3]))
        case 0x82: (header, content) = (5, Int(start[3]) << 8 | Int(start[4]))
        default: return nil
        }
        // The body of the certificate comes first.
        guard start[header] == 0x7F, header + content <= CVCertificate.maximumLength else { return nil }
        return header + content
    }

    private static func encoded(_ bytes: [UInt8], at position: Int) -> (bytes: [UInt8], length: Int)? {
        guard let length = length(bytes[position...]), bytes.count - position >= length else { return nil }
        return (Array(bytes[position..<(position + length)]), length)
    }

    private static func digits(_ bytes: [UInt8], at position: Int) -> (bytes: [UInt8], length: Int)? {
        guard let start = decode(7, bytes, position), let length = length(start.bytes) else { return nil }
        return decode(length, bytes, position)
    }

    /// Decodes `count` bytes from digits; nil when another character comes before the last digit.
    private static func decode(_ count: Int, _ bytes: [UInt8], _ position: Int) -> (bytes: [UInt8], length: Int)? {
        var out: [UInt8] = []
        out.reserveCapacity(count)
        var high: UInt8?
        // Programs do not write long gaps, which would make the search slow.
        var gap = 0
        for index in position..<bytes.count {
            guard let value = Hex.value(bytes[index]) else {
                gap += 1
                guard separators.contains(bytes[index]), gap <= 16 else { return nil }
                continue
            }
            gap = 0
            guard let first = high else {
                high = value
                continue
            }
            out.append(first << 4 | value)
            high = nil
            if out.count == count { return (out, index + 1 - position) }
        }
        return nil
    }

    private static let separators: Set<UInt8> = [0x09, 0x0A, 0x0D, 0x20, UInt8(ascii: ":")]
}
