// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import EID
import ISO7816
import Text

/// The card-verifiable certificate of a PKOC card with SE V2. PKOC NFC 2.0.1.
///
/// The structure is that of an eID certificate. The names are longer, there are no access rights, and an object
/// identifier names the domain parameters.
package struct PKOCCertificate: Sendable, Equatable {
    /// One entry of the extensions, such as a serial number of the card.
    package struct Extension: Sendable, Equatable {
        /// The content of the object identifier.
        package let identifier: [UInt8]
        package let value: [UInt8]
    }

    /// The object 7F4E with its header, which is signed.
    package let body: [UInt8]
    /// With an issuer on P-256: r and s, 32 bytes each. With RSA: as long as the modulus.
    package let signature: [UInt8]
    /// The name of the issuer, 16 bytes of A to Z and 0 to 9.
    package let issuerReference: [UInt8]
    /// The name of the card, 16 bytes of A to Z and 0 to 9.
    package let subjectReference: [UInt8]
    /// The key of the card, on P-256.
    package let key: ECPublicKey
    /// The first day on which the certificate is valid.
    package let from: CVDate
    /// The last day on which the certificate is valid.
    package let to: CVDate
    package let extensions: [Extension]

    /// The maximum number of bytes of a certificate.
    package static let maximumLength = 2048

    /// The tag of a certificate.
    package static let tag: UInt32 = 0x7F21

    /// prime256v1: 1.2.840.10045.3.1.7.
    static let curveIdentifier: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]

    private static let tags: [UInt32] = [
        0x5F29, 0x42, PKOCTag.certificateKey, 0x5F20, 0x5F25, 0x5F24,
    ]

    /// Reads the object 7F21.
    /// - Throws: `PKOCProblem.malformed`, `.unsupported` for a key of the card that is not on P-256.
    package init(_ bytes: [UInt8]) throws(PKOCProblem) {
        guard bytes.count <= Self.maximumLength else { throw .malformed }
        let fields: [BERTLV]
        let keyObjects: [BERTLV]
        do throws(Malformed) {
            let outer = try BERTLV(bytes)
            guard outer.tag == Self.tag else { throw .invalidTag }
            let parts = try outer.children
            guard parts.map(\.tag) == [0x7F4E, 0x5F37] else { throw .invalidTag }
            fields = try parts[0].children
            let tags = fields.map(\.tag)
            guard tags == Self.tags || tags == Self.tags + [0x65] else { throw .invalidTag }
            keyObjects = try fields[2].children
            extensions = fields.count == 7 ? try Self.extensions(in: fields[6]) : []
            body = parts[0].encoded
            signature = parts[1].value
        } catch {
            throw .malformed
        }
        issuerReference = fields[1].value
        subjectReference = fields[3].value
        guard fields[0].value == [0], Self.isReference(issuerReference), Self.isReference(subjectReference),
            let first = CVDate(bytes: fields[4].value), let last = CVDate(bytes: fields[5].value)
        else { throw .malformed }
        from = first
        to = last
        guard keyObjects.map(\.tag) == [0x06, 0x86] else { throw .malformed }
        guard keyObjects[0].value == Self.curveIdentifier else { throw .unsupported }
        guard let key = try? ECPublicKey(keyObjects[1].value, on: .secp256r1) else { throw .malformed }
        self.key = key
    }

    private static func extensions(in object: BERTLV) throws(Malformed) -> [Extension] {
        try object.children.map { entry throws(Malformed) in
            let objects = try entry.children
            guard entry.tag == 0x73, objects.map(\.tag) == [0x06, 0x53] else { throw .invalidTag }
            return Extension(identifier: objects[0].value, value: objects[1].value)
        }
    }

    /// Whether bytes are a name of an issuer or of a card.
    package static func isReference(_ bytes: [UInt8]) -> Bool {
        bytes.count == 16 && bytes.allSatisfy { (0x41...0x5A).contains($0) || (0x30...0x39).contains($0) }
    }

    /// Returns why a site does not accept the certificate on this day; nil: it is valid.
    package func problem(at site: PKOCSite, on day: CVDate) -> PKOCProblem? {
        // Two issuers may have the same name, for example while one of them changes its key.
        let issuers = site.issuers.filter { $0.reference == issuerReference }
        guard !issuers.isEmpty else { return .unknownIssuer }
        do throws(CryptoError) {
            var isSigned = false
            for issuer in issuers where !isSigned {
                isSigned = try issuer.key.verify(signature, of: body)
            }
            guard isSigned else { return .wrongCertificateSignature }
        } catch {
            return .internalError
        }
        if day < from { return .notYetValid }
        return day > to ? .expired : nil
    }
}
