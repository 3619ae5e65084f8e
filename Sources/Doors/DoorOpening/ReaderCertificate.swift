// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// The certificate of a PKOC reader, 138 bytes: version 1, location, site, two times, compressed key, and the signature of
/// the site's issuer over the first 74 bytes.
package struct ReaderCertificate: Sendable, Equatable {
    package let location: [UInt8]
    package let site: [UInt8]
    /// Seconds since 1970; 0: no limit.
    package let notBefore: UInt32
    /// Seconds since 1970; the largest number: no limit.
    package let notAfter: UInt32
    package let key: ECPublicKey
    private let signed: [UInt8]
    private let signature: [UInt8]

    package static let count = 138
    private static let signedCount = 74

    /// - Throws: `.malformed` for another length or version, or a key that is not on the curve.
    package init(_ bytes: [UInt8]) throws(PKOCFailure) {
        guard bytes.count == Self.count, bytes[0] == 1,
            let key = try? ECPublicKey(compressedPoint: Array(bytes[41..<74]), on: .secp256r1)
        else { throw .malformed }
        location = Array(bytes[1..<17])
        site = Array(bytes[17..<33])
        notBefore = UInt32(bigEndian: bytes[33..<37])
        notAfter = UInt32(bigEndian: bytes[37..<41])
        self.key = key
        signed = Array(bytes.prefix(Self.signedCount))
        signature = Array(bytes.dropFirst(Self.signedCount))
    }

    package func isSigned(by issuer: ECPublicKey) -> Bool {
        (try? ECDSA.verify(signature, of: signed, with: issuer, digest: .sha256)) ?? false
    }

    /// `now` is in seconds since 1970.
    package func isValid(at now: UInt32) -> Bool { notBefore <= now && now <= notAfter }
}

/// The readers of a site that are no longer trusted: version 1, site, time of issue, the number of entries, entries of a
/// location and a time, and the signature of the site's issuer over all of it.
package struct RevocationList: Sendable, Equatable {
    package let site: [UInt8]
    /// Seconds since 1970. Only a list with a later time replaces another one.
    package let issued: UInt32
    private let locations: Set<[UInt8]>

    private static let headCount = 23
    private static let entryCount = 20
    private static let signatureCount = 64

    /// Reads a list and checks its signature.
    /// - Throws: `.malformed` for another form, `.wrongSignature` for a list of another issuer.
    package init(_ bytes: [UInt8], issuerKey: ECPublicKey) throws(PKOCFailure) {
        guard bytes.count >= Self.headCount + Self.signatureCount, bytes[0] == 1 else { throw .malformed }
        let number = Int(bytes[21]) << 8 | Int(bytes[22])
        let end = Self.headCount + number * Self.entryCount
        guard bytes.count == end + Self.signatureCount else { throw .malformed }
        let isGenuine = try? ECDSA.verify(
            Array(bytes[end...]),
            of: Array(bytes[..<end]),
            with: issuerKey,
            digest: .sha256
        )
        guard isGenuine == true else { throw .wrongSignature }
        site = Array(bytes[1..<17])
        issued = UInt32(bigEndian: bytes[17..<21])
        locations = Set(
            (0..<number).map { index in
                let start = Self.headCount + index * Self.entryCount
                return Array(bytes[start..<start + DoorSite.identifierCount])
            }
        )
    }

    /// Whether the reader at this location is revoked. Later certificates for the location are refused, too, until a newer
    /// list no longer names it.
    package func revokes(_ location: [UInt8]) -> Bool { locations.contains(location) }
}

extension UInt32 {
    /// Reads at most four bytes, the most significant first.
    init(bigEndian bytes: some Sequence<UInt8>) { self = bytes.reduce(0) { $0 << 8 | UInt32($1) } }

    /// Four bytes, the most significant first.
    var bigEndianBytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: self >> (24 - 8 * $0)) } }
}
