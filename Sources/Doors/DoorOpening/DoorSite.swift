// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Taps
package import Vault

/// A site whose readers a credential opens, and how its readers prove that they belong to the site.
package struct DoorSite: Sendable {
    /// The length of identifiers of sites and of locations in bytes.
    package static let identifierCount = 16

    package let identifier: [UInt8]
    /// The pinned key with which readers of the site sign; nil if they sign with keys of their own.
    package let siteKey: ECPublicKey?
    /// The key with which the site signs certificates of readers; nil if it has none.
    package let issuerKey: ECPublicKey?
    /// The readers that the credential may open; empty: all readers of the site.
    package let locations: Set<[UInt8]>
    /// The readers support only the flow without encryption. In this flow, anybody can pose as the site and get the
    /// public key.
    package let isLegacy: Bool
    /// The newest list of revoked readers; nil if there is none.
    package let revocations: ReaderRevocations?

    /// - Parameters:
    ///   - identifier: 16 bytes.
    ///   - siteKey: an uncompressed P-256 point, 65 bytes.
    ///   - issuerKey: an uncompressed P-256 point, 65 bytes.
    ///   - locations: identifiers of readers, 16 bytes each.
    ///   - isLegacy: whether the flow without encryption is used.
    ///   - revocations: a list that `issuerKey` has signed.
    /// - Throws: `.malformed` for another length or a point that is not on the curve.
    package init(
        identifier: [UInt8],
        siteKey: [UInt8]? = nil,
        issuerKey: [UInt8]? = nil,
        locations: Set<[UInt8]> = [],
        isLegacy: Bool = false,
        revocations: ReaderRevocations? = nil
    ) throws(PKOCFailure) {
        guard identifier.count == Self.identifierCount,
            locations.allSatisfy({ $0.count == Self.identifierCount })
        else { throw .malformed }
        self.identifier = identifier
        self.siteKey = try siteKey.map(Self.key)
        self.issuerKey = try issuerKey.map(Self.key)
        self.locations = locations
        self.isLegacy = isLegacy
        self.revocations = revocations
        if let revocations, revocations.site != identifier { throw .malformed }
    }

    private static func key(_ bytes: [UInt8]) throws(PKOCFailure) -> ECPublicKey {
        guard let key = try? ECPublicKey(bytes, on: .secp256r1) else { throw .malformed }
        return key
    }

    func covers(site: [UInt8], location: [UInt8]) -> Bool {
        identifier == site && (locations.isEmpty || locations.contains(location))
    }

    /// Whether the site has revoked the reader at this location.
    func revokes(_ location: [UInt8]) -> Bool { revocations?.revokes(location) ?? false }

    /// Returns the key with which a reader must sign.
    ///
    /// A reader that presents a certificate must use its key; the site key is not accepted then.
    /// - Parameters:
    ///   - certificate: the certificate that the reader presents; nil if it presents none.
    ///   - location: the reader.
    ///   - now: seconds since 1970.
    /// - Returns: the key of the certificate, or the site key if there is no certificate.
    /// - Throws: the reason why the reader is not trusted.
    func readerKey(
        _ certificate: ReaderCertificate?,
        location: [UInt8],
        at now: UInt32
    ) throws(PKOCFailure) -> ECPublicKey {
        guard let certificate else {
            guard let siteKey else { throw .noCertificate }
            return siteKey
        }
        guard let issuerKey, certificate.site == identifier, certificate.location == location,
            certificate.isSigned(by: issuerKey)
        else { throw .certificateInvalid }
        guard certificate.isValid(at: now) else { throw .certificateExpired }
        return certificate.key
    }
}
