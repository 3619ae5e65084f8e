// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The readers of a site that are no longer trusted. The encoding has version 1, the site, the time of issue, the
/// number of entries, and the entries, each with a location and a time. The signature of the site's issuer over all of
/// them follows. PKOC BLE 2.0.1.
package struct ReaderRevocations: Sendable, Equatable {
    /// The site identifier: 16 bytes.
    package let site: [UInt8]
    /// Seconds since 1970. Only a list with a later time replaces another one.
    package let issued: UInt32
    /// The reader location identifiers, 16 bytes each.
    package let locations: Set<[UInt8]>
    /// The list as it was read.
    package let encoded: [UInt8]

    private static let headCount = 23
    private static let entryCount = 20
    private static let locationCount = 16
    private static let signatureCount = 64
    /// The maximum number of bytes of a list that badged keeps: 1000 entries.
    package static let maximumCount = headCount + 1000 * entryCount + signatureCount

    /// Reads a list and checks its signature. `issuerKey` is the key of the site's issuer.
    /// - Throws: `Malformed` for another form, or for a list of another issuer.
    package init(_ bytes: [UInt8], issuerKey: ECPublicKey) throws(Malformed) {
        guard bytes.count >= Self.headCount + Self.signatureCount, bytes.count <= Self.maximumCount, bytes[0] == 1
        else { throw Malformed("another form") }
        let number = Int(bytes[21]) << 8 | Int(bytes[22])
        let end = Self.headCount + number * Self.entryCount
        guard bytes.count == end + Self.signatureCount else { throw Malformed("another form") }
        let isGenuine = try? ECDSA.verify(
            Array(bytes[end...]),
            of: Array(bytes[..<end]),
            with: issuerKey,
            digest: .sha256
        )
        guard isGenuine == true else { throw Malformed("another issuer has signed it") }
        site = Array(bytes[1..<17])
        issued = UInt32(bigEndian: bytes[17..<21])
        locations = Set(
            (0..<number).map { index in
                let start = Self.headCount + index * Self.entryCount
                return Array(bytes[start..<start + Self.locationCount])
            }
        )
        encoded = bytes
    }

    /// Whether the reader at this location is revoked. Later certificates for the location are refused, too, until a newer
    /// list no longer names it.
    package func revokes(_ location: [UInt8]) -> Bool { locations.contains(location) }
}

extension UInt32 {
    /// Reads at most four bytes, the most significant first.
    package init(bigEndian bytes: some Sequence<UInt8>) { self = bytes.reduce(0) { $0 << 8 | UInt32($1) } }

    /// Four bytes, the most significant first.
    package var bigEndianBytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: self >> (24 - 8 * $0)) } }
}
