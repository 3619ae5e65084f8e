// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import ISO7816
package import Text

/// A certificate of a country's authority, of a document signer, or of a master list signer. RFC 5280 4,
/// ICAO 9303-12 7.1.
///
/// The structure is read here, and libcrypto verifies only signatures with keys that `PublicKeyInfo` has checked:
/// libcrypto would read explicit parameters before anybody could compare them.
package struct DocumentCertificate: Sendable, Hashable {
    /// The bytes as they were found.
    package let bytes: [UInt8]
    let signedPart: [UInt8]
    /// In two's complement, as few bytes as possible.
    package let serial: [UInt8]
    package let issuer: DistinguishedName
    package let subject: DistinguishedName
    /// The first and last second of validity, since 1970.
    package let validity: ClosedRange<Int>
    /// The encoded SubjectPublicKeyInfo.
    let publicKeyInfo: [UInt8]
    let signatureAlgorithm: BERTLV
    let signature: [UInt8]
    package private(set) var authorityKeyID: [UInt8]?
    package private(set) var subjectKeyID: [UInt8]?
    /// What the basic constraints say; nil if the extension is missing.
    private var constraint: Bool?
    /// How many authorities that are no links may follow; nil if it is not said. RFC 5280 4.2.1.9.
    private(set) var pathLength: Int?
    /// Whether the holder has had another name before. ICAO 9303-12 7.1.1.
    private(set) var hasChangedName = false
    /// The first two bytes of the key usage; nil if the extension is missing.
    package private(set) var keyUsage: UInt16?
    package private(set) var extendedKeyUsages: [[UInt8]] = []
    /// The types of documents that the holder signs; nil if the extension is missing. ICAO 9303-12 7.1.1.7.
    package private(set) var documentTypes: [String]?
    /// Where the issuer publishes its revocation list, as it says. Nobody is asked there because of it. RFC 5280 4.2.1.13.
    package private(set) var listAddresses: [String] = []
    /// Whether there is a rule of the issuer that nobody here knows: such a certificate has no rights. RFC 5280 4.2.
    package private(set) var hasUnknownRule = false

    /// The maximum length of a certificate in bytes.
    package static let maximumLength = 16_384

    /// What names a certificate: its issuer, and the number that the issuer has given it.
    package struct Name: Sendable, Equatable {
        let issuer: DistinguishedName
        let serial: [UInt8]
    }

    var name: Name { Name(issuer: issuer, serial: serial) }

    package static func == (left: DocumentCertificate, right: DocumentCertificate) -> Bool { left.bytes == right.bytes }
    package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

    /// Reads exactly one certificate.
    /// - Throws: `Malformed`.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumLength else { throw .invalidLength }
        let outer = try RawObject(definite: bytes)
        let parts = try outer.children()
        guard outer.tag == 0x30, parts.count == 3, parts[0].tag == 0x30, parts[1].tag == 0x30, parts[2].tag == 0x03,
            parts[2].value.first == 0
        else { throw .invalidTag }
        var fields = try parts[0].children()[...]
        if fields.first?.tag == 0xA0 { fields = fields.dropFirst() }
        guard fields.count >= 6 else { throw .truncated }
        let body = Array(fields)
        guard body[0].tag == 0x02, !body[0].value.isEmpty, body[1].tag == 0x30, body[3].tag == 0x30,
            body[5].tag == 0x30
        else { throw .invalidTag }
        self.bytes = bytes
        signedPart = Array(parts[0].raw)
        serial = body[0].integer
        issuer = try DistinguishedName(body[2].object)
        let times = try body[3].children()
        guard times.count == 2, let from = DocumentTime.seconds(times[0].object),
            let until = DocumentTime.seconds(times[1].object), from <= until
        else { throw .invalidTag }
        validity = from...until
        subject = try DistinguishedName(body[4].object)
        publicKeyInfo = Array(body[5].raw)
        // Both places name the algorithm; a difference is a fault of the certificate. RFC 5280 4.1.1.2.
        guard body[1].object == parts[1].object else { throw .invalidTag }
        signatureAlgorithm = parts[1].object
        signature = Array(parts[2].value.dropFirst())
        if let wrapped = body.dropFirst(6).first(where: { $0.tag == 0xA3 }) {
            try readExtensions(wrapped)
        }
    }

    private mutating func readExtensions(_ wrapped: RawObject) throws(Malformed) {
        guard let list = try wrapped.children().first else { throw .invalidTag }
        var seen: Set<[UInt8]> = []
        for rule in try CertificateRule.all(of: list) {
            // A repeated extension would let two readers see different rights.
            guard seen.insert(rule.identifier).inserted else { throw .invalidTag }
            let isKnown = try parseExtension(rule.identifier, rule.content)
            if rule.isCritical, !isKnown { hasUnknownRule = true }
        }
    }

    /// - Returns: whether the extension is known.
    private mutating func parseExtension(_ identifier: [UInt8], _ content: [UInt8]) throws(Malformed) -> Bool {
        switch identifier {
        case Self.authorityKey:
            authorityKeyID = try BERTLV(content).children.first { $0.tag == 0x80 }?.value
        case Self.subjectKey:
            subjectKeyID = try BERTLV(content).value
        case Self.basicConstraints:
            let fields = try BERTLV(content).children
            constraint = fields.first.map { $0.tag == 0x01 && $0.value != [0] } ?? false
            if let limit = fields.first(where: { $0.tag == 0x02 }) {
                guard (1...2).contains(limit.value.count), limit.value[0] < 0x80 else { throw .invalidTag }
                pathLength = limit.value.reduce(0) { $0 << 8 | Int($1) }
            }
        case Self.keyUsageID:
            let bits = try BERTLV(content)
            guard bits.tag == 0x03, bits.value.count >= 2 else { throw .invalidTag }
            keyUsage = UInt16(bits.value[1]) << 8 | (bits.value.count > 2 ? UInt16(bits.value[2]) : 0)
        case Self.extendedKeyUsage:
            extendedKeyUsages = try BERTLV(content).children.map(\.value)
            // A list without a use allows none.
            if extendedKeyUsages.isEmpty { hasUnknownRule = true }
        case Self.documentTypeList:
            let fields = try BERTLV(content).children
            guard fields.count == 2, fields[1].tag == 0x31 else { throw .invalidTag }
            documentTypes = try fields[1].children.prefix(64).map { DocumentField.decode($0.value) }
        case Self.nameConstraints:
            // Nobody here compares names with them. RFC 5280 wants them critical; some write them otherwise.
            hasUnknownRule = true
        case Self.nameChange:
            hasChangedName = true
        case Self.listPlaces:
            listAddresses = Self.addresses(in: content)
        case Self.privateKeyUsagePeriod, Self.subjectNames, Self.issuerNames, Self.policies:
            // They take no right away: the time of signing, other names, and policies of which any will do. ICAO 9303-12
            // 7.1.
            break
        default:
            return false
        }
        return true
    }

    /// The addresses of distribution points with a full name. One that cannot be read takes no right away.
    private static func addresses(in content: [UInt8]) -> [String] {
        let points = (try? BERTLV(content).children) ?? []
        return points.flatMap { point in
            let names = try? point.children.first { $0.tag == 0xA0 }?.children.first { $0.tag == 0xA0 }?.children
            return (names ?? []).filter { $0.tag == 0x86 }.compactMap { String(validating: $0.value, as: UTF8.self) }
        }
    }

    /// The holder's key. Reading compares explicit parameters with the known curves.
    package var publicKey: PublicKeyInfo {
        get throws(PublicKeyInfo.Fault) { try PublicKeyInfo(publicKeyInfo) }
    }

    /// Whether subject and issuer have the same name: the holder has certified its own key, or its next one.
    package var isSelfIssued: Bool { subject == issuer }

    /// Whether the holder has signed the certificate with the certified key. A certificate that is only self-issued may
    /// be a link, which the holder's old key has signed.
    package var isSelfSigned: Bool { isSelfIssued && check(signedBy: self) == .right }

    /// Whether the key that has signed the certificate is, as it says, not the certified one.
    package var namesAnotherKey: Bool { authorityKeyID != nil && authorityKeyID != subjectKeyID }

    /// Whether the holder is an authority: its basic constraints say so. Some published authorities have none: then the
    /// key usage is that of an authority alone, or the certificate is self-issued and its key usage has nothing else.
    package var isAuthority: Bool {
        if let constraint { return constraint }
        return keyUsage.map { $0 & 0x0400 != 0 && ($0 & 0x8000 == 0 || isSelfIssued) } ?? isSelfIssued
    }

    /// Whether the holder may sign certificates.
    package var signsCertificates: Bool { SignedObject.certificate.rule.permits(self) }

    /// The result of checking a signature with another certificate's key.
    package enum Check: Sendable, Equatable {
        case right
        case wrong
        /// The algorithm or the key of the issuer is not supported.
        case unsupported
    }

    /// Checks the signature with the key of `issuer`, and nothing else.
    package func check(signedBy issuer: DocumentCertificate) -> Check {
        issuer.check(signature, ofObject: signedPart, algorithm: signatureAlgorithm)
    }

    /// Checks the signature of an object as it was found, and of its form in DER, which is what was signed.
    func check(_ signature: [UInt8], ofObject object: [UInt8], algorithm: BERTLV) -> Check {
        let found = check(signature, of: object, algorithm: algorithm)
        guard found == .wrong else { return found }
        let shortest = DefiniteLengths.shortest(object)
        return shortest == object ? found : check(signature, of: shortest, algorithm: algorithm)
    }

    /// Checks a signature with the key of this certificate.
    func check(
        _ signature: [UInt8],
        of message: [UInt8],
        algorithm: BERTLV,
        digest: DigestAlgorithm? = nil
    ) -> Check {
        guard let algorithm = SignatureAlgorithm(algorithm, digest: digest) else { return .unsupported }
        let key: PublicKeyInfo
        do throws(PublicKeyInfo.Fault) {
            key = try publicKey
        } catch {
            return error == .unsupported ? .unsupported : .wrong
        }
        guard let isRight = try? algorithm.verify(signature, of: message, with: key) else { return .unsupported }
        return isRight ? .right : .wrong
    }

    /// The SHA-256 of the certificate, which people compare.
    package var fingerprint: [UInt8] { (try? DigestAlgorithm.sha256.hash(bytes)) ?? [] }

    private static let certificateExtension: [UInt8] = [0x55, 0x1D]
    private static let authorityKey = certificateExtension + [35]
    private static let subjectKey = certificateExtension + [14]
    private static let basicConstraints = certificateExtension + [19]
    private static let keyUsageID = certificateExtension + [15]
    private static let extendedKeyUsage = certificateExtension + [37]
    private static let privateKeyUsagePeriod = certificateExtension + [16]
    private static let subjectNames = certificateExtension + [17]
    private static let issuerNames = certificateExtension + [18]
    private static let nameConstraints = certificateExtension + [30]
    private static let policies = certificateExtension + [32]
    private static let listPlaces = certificateExtension + [31]
    private static let nameChange = OID.icaoSecurity + [6, 1]
    private static let documentTypeList = OID.icaoSecurity + [6, 2]
}

/// Times of certificates. RFC 5280 4.1.2.5.
package enum DocumentTime {
    /// The day of a time in seconds since 1970, as YYYY-MM-DD, UTC.
    package static func text(_ time: Int) -> String { CalendarDay(of: time).text }

    /// Reads UTCTime or GeneralizedTime as seconds since 1970; nil for another form than with seconds and Z.
    static func seconds(_ object: BERTLV) -> Int? {
        var digits = object.value[...]
        guard digits.popLast() == UInt8(ascii: "Z"), digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        let numbers = digits.map { Int($0 - 0x30) }
        let year: Int
        switch (object.tag, numbers.count) {
        case (0x17, 12):
            let short = numbers[0] * 10 + numbers[1]
            year = short < 50 ? 2000 + short : 1900 + short
        case (0x18, 14):
            year = numbers[0] * 1000 + numbers[1] * 100 + numbers[2] * 10 + numbers[3]
        default: return nil
        }
        let rest = Array(numbers.suffix(10))
        let pair = { (index: Int) in rest[index] * 10 + rest[index + 1] }
        let (month, day, hour, minute, second) = (pair(0), pair(2), pair(4), pair(6), pair(8))
        guard (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61 else { return nil }
        return CalendarDay.days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
    }
}
