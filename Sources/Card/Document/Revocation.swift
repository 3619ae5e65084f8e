// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// A list of revoked certificates of a country. RFC 5280 5, ICAO 9303-12 7.1.4.
package struct RevocationList: Sendable, Equatable {
    package let bytes: [UInt8]
    package let issuer: DistinguishedName
    /// Seconds since 1970.
    package let thisUpdate: Int
    /// When the next list is due; nil if the list does not say it.
    package let nextUpdate: Int?
    /// What a list is about.
    package enum Scope: Sendable {
        /// Everything that the authority has signed.
        case complete
        /// Some certificates, some reasons, or what is new: a certificate that it has not may be revoked.
        case partial
        /// Nobody here knows: the list has a critical rule that is not known, or its entries cannot be read.
        case unknown
    }

    package private(set) var scope = Scope.complete
    /// Why nobody here knows what the list is about; nil if it is known.
    package private(set) var fault: Malformed?
    /// The number without zeros in front; nil if the list has none.
    private var number: [UInt8]?
    private var serials: Set<[UInt8]> = []
    private let signedPart: [UInt8]
    private let signatureAlgorithm: BERTLV
    private let signature: [UInt8]

    /// The maximum number of entries. Lists of countries hardly ever have any.
    private static let maximumEntries = 65_536
    /// The maximum length of a list that can be used, in bytes. A longer one cannot, but no older list counts in its place.
    package static let maximumLength = 4 << 20

    /// Reads exactly one list. Of a list that cannot be used it is known who has made it, and when.
    /// - Throws: `Malformed`.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= DocumentAnchorFile.maximumLength else { throw .invalidLength }
        let outer = try RawObject(definite: bytes)
        let parts = try outer.children()
        guard outer.tag == 0x30, parts.count == 3, parts[0].tag == 0x30, parts[1].tag == 0x30, parts[2].tag == 0x03,
            parts[2].value.first == 0
        else { throw .invalidTag }
        var fields = try parts[0].children(limit: 16)[...]
        if fields.first?.tag == 0x02 { fields = fields.dropFirst() }
        let body = Array(fields)
        guard body.count >= 3, body[0].object == parts[1].object, let update = DocumentTime.seconds(body[2].object)
        else { throw .invalidTag }
        issuer = try DistinguishedName(body[1].object)
        thisUpdate = update
        var rest = body.dropFirst(3)
        if let next = rest.first, next.tag == 0x17 || next.tag == 0x18 {
            nextUpdate = DocumentTime.seconds(next.object)
            rest = rest.dropFirst()
        } else {
            nextUpdate = nil
        }
        self.bytes = bytes
        signedPart = Array(parts[0].raw)
        signatureAlgorithm = parts[1].object
        signature = Array(parts[2].value.dropFirst())
        do throws(Malformed) {
            guard bytes.count <= Self.maximumLength else { throw .invalidLength }
            try readEntries(rest)
        } catch {
            scope = .unknown
            fault = error
        }
        if scope == .unknown { serials = [] }
    }

    /// Reads the entries, and the rules that say what the list is about.
    private mutating func readEntries(_ fields: ArraySlice<RawObject>) throws(Malformed) {
        var rest = fields
        var entries: [RawObject] = []
        if let list = rest.first, list.tag == 0x30 {
            entries = try list.children(limit: Self.maximumEntries)
            rest = rest.dropFirst()
        }
        var isDelta = false
        if let wrapped = rest.first, wrapped.tag == 0xA0 {
            guard let rules = try wrapped.children().first else { throw .invalidTag }
            for rule in try CertificateRule.all(of: rules) {
                switch rule.identifier {
                case Self.deltaIndicator:
                    isDelta = true
                    scope = .partial
                case Self.distributionPoint:
                    // Entries of other authorities, or numbers of attribute certificates.
                    let isForeign = try BERTLV(rule.content).children.contains { field in
                        [0x84, 0x85].contains(field.tag) && field.value != [0]
                    }
                    guard !isForeign else { throw .criticalRule }
                    scope = .partial
                case Self.listNumber:
                    if let number = try? BERTLV(rule.content), number.tag == 0x02, number.value.first ?? 0x80 < 0x80 {
                        self.number = Array(number.value.drop { $0 == 0 })
                    }
                case Self.authorityKey, Self.issuerNames, Self.newestDelta: continue
                default: guard !rule.isCritical else { throw .criticalRule }
                }
            }
            rest = rest.dropFirst()
        }
        guard rest.isEmpty else { throw .leftOver }
        for entry in entries {
            let fields = try entry.children(limit: 3)
            guard entry.tag == 0x30, let serial = fields.first, serial.tag == 0x02 else { throw .invalidTag }
            var isReleased = false
            for rule in fields.count == 3 ? try CertificateRule.all(of: fields[2]) : [] {
                switch rule.identifier {
                // Only the addition to a list can take something from it. RFC 5280 5.3.1.
                case Self.reason: isReleased = isDelta && rule.content == [0x0A, 0x01, 0x08]
                case Self.holdInstruction, Self.invalidityDate: continue
                default: guard !rule.isCritical else { throw .criticalRule }
                }
            }
            if !isReleased { serials.insert(serial.integer) }
        }
    }

    /// Whether the list is the newest one: it is out, and its successor is not due.
    package func isCurrent(at time: Int) -> Bool { thisUpdate <= time && nextUpdate.map { time <= $0 } ?? false }

    /// The number of entries.
    package var count: Int { serials.count }

    package func contains(_ serial: [UInt8]) -> Bool {
        if serials.contains(serial) { return true }
        // Some programs write random numbers without the zero that the first bit asks for. Short ones may be others.
        guard serial.count >= Self.randomLength, let first = serial.first else { return false }
        return first == 0
            ? serials.contains(Array(serial.dropFirst())) : first & 0x80 != 0 && serials.contains([0] + serial)
    }

    /// Whether the list takes the place of another one of the same key: it was made later, and its number is not smaller,
    /// since numbers grow. Of two lists of the same second, the one that revokes more does. X.509 9.5.2.1, RFC 5280 5.2.3.
    package func follows(_ other: RevocationList) -> Bool {
        if scope == other.scope, let number, let before = other.number {
            let isSmaller =
                number.count == before.count ? number.lexicographicallyPrecedes(before) : number.count < before.count
            guard !isSmaller else { return false }
        }
        return thisUpdate > other.thisUpdate
            || thisUpdate == other.thisUpdate && serials.isSuperset(of: other.serials)
    }

    private static let randomLength = 8

    /// Checks the signature with the key of an authority; one that may not sign lists has not signed this one.
    package func check(signedBy authority: DocumentCertificate) -> DocumentCertificate.Check {
        guard SignedObject.revocationList.rule.permits(authority) else { return .wrong }
        return authority.check(signature, ofObject: signedPart, algorithm: signatureAlgorithm)
    }

    private static let family: [UInt8] = [0x55, 0x1D]
    private static let issuerNames = family + [18]
    private static let listNumber = family + [20]
    private static let reason = family + [21]
    private static let holdInstruction = family + [23]
    private static let invalidityDate = family + [24]
    private static let deltaIndicator = family + [27]
    private static let distributionPoint = family + [28]
    private static let authorityKey = family + [35]
    private static let newestDelta = family + [46]
}

/// The defects of document signers that a country has published. BSI TR-03129, ICAO 9303-12 9.
package struct DefectList: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        let name: DocumentCertificate.Name
        /// The contents of the object identifiers of the defects.
        package let defects: [[UInt8]]
    }

    package let entries: [Entry]

    /// id-defectList: bsi-de 3.1.5.
    package static let contentType: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x03, 0x01, 0x05]
    private static let maximumEntries = 4096

    /// Reads the signed content.
    /// - Throws: `Malformed`.
    package init(content: [UInt8]) throws(Malformed) {
        let fields = try RawObject(definite: content).children(limit: 8)
        guard let set = fields.last, fields.count >= 3, set.tag == 0x31 else { throw .invalidTag }
        entries = try set.children(limit: Self.maximumEntries).map { entry throws(Malformed) in
            let parts = try entry.children(limit: 3)
            guard parts.count >= 2, let last = parts.last, parts[0].tag == 0x30, last.tag == 0x31 else {
                throw .invalidTag
            }
            let signer = try parts[0].children(limit: 2)
            guard signer.count == 2, signer[1].tag == 0x02 else { throw .invalidTag }
            let defects = try last.children().map { defect throws(Malformed) in
                guard let identifier = try defect.children(limit: 2).first, identifier.tag == 0x06 else {
                    throw Malformed.invalidTag
                }
                return identifier.value
            }
            let issuer = try DistinguishedName(signer[0].object)
            return Entry(name: .init(issuer: issuer, serial: signer[1].integer), defects: defects)
        }
    }

    /// The defects of a signer; empty if it has none.
    func defects(of name: DocumentCertificate.Name) -> [[UInt8]] {
        entries.filter { $0.name.issuer.hasParts(of: name.issuer) && $0.name.serial == name.serial }.flatMap(\.defects)
    }
}

/// An extension of a certificate, of a list, or of an entry. RFC 5280 4.2.
struct CertificateRule {
    /// The content of the object identifier.
    let identifier: [UInt8]
    let isCritical: Bool
    let content: [UInt8]

    /// Reads a SEQUENCE OF Extension.
    static func all(of list: RawObject) throws(Malformed) -> [CertificateRule] {
        guard list.tag == 0x30 else { throw .invalidTag }
        return try list.children().map { entry throws(Malformed) in
            let fields = try entry.children(limit: 3)
            guard entry.tag == 0x30, fields.count >= 2, fields[0].tag == 0x06, let content = fields.last,
                content.tag == 0x04
            else { throw .invalidTag }
            let isCritical = fields.count == 3 && fields[1].tag == 0x01 && fields[1].value != [0]
            return CertificateRule(identifier: fields[0].value, isCritical: isCritical, content: content.value)
        }
    }
}

extension Malformed {
    static let criticalRule = Malformed(Phrase("it has a critical rule that badged does not know"))
}
