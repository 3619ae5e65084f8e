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
    private let serials: Set<[UInt8]>
    private let signedPart: [UInt8]
    private let signatureAlgorithm: BERTLV
    private let signature: [UInt8]

    /// The maximum number of entries. Lists of countries hardly ever have any.
    private static let maximumEntries = 65_536
    /// The maximum length of a list in bytes.
    package static let maximumLength = 4 << 20

    /// Reads exactly one list.
    /// - Throws: `Malformed`.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumLength else { throw .invalidLength }
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
        var serials: Set<[UInt8]> = []
        if let list = rest.first, list.tag == 0x30 {
            for entry in try list.children(limit: Self.maximumEntries) {
                let fields = try entry.children(limit: 3)
                guard entry.tag == 0x30, let serial = fields.first, serial.tag == 0x02 else { throw .invalidTag }
                if fields.count == 3 { try Self.refuseCriticalRules(in: fields[2]) }
                serials.insert(serial.magnitude)
            }
            rest = rest.dropFirst()
        }
        if let wrapped = rest.first, wrapped.tag == 0xA0 {
            guard let rules = try wrapped.children().first else { throw .invalidTag }
            try Self.refuseCriticalRules(in: rules)
        }
        self.bytes = bytes
        self.serials = serials
        signedPart = Array(parts[0].raw)
        signatureAlgorithm = parts[1].object
        signature = Array(parts[2].value.dropFirst())
    }

    /// A list with a rule that nobody here knows may be about other certificates, or only about some. RFC 5280 5.2.
    private static func refuseCriticalRules(in extensions: RawObject) throws(Malformed) {
        for entry in try extensions.children() {
            let fields = try entry.children(limit: 3)
            if fields.count == 3, fields[1].tag == 0x01, fields[1].value != [0] {
                throw .criticalRule
            }
        }
    }

    /// Whether the list is the newest one: it is out, and its successor is not due.
    func isCurrent(at time: Int) -> Bool { thisUpdate <= time && nextUpdate.map { time <= $0 } ?? false }

    /// The number of entries.
    package var count: Int { serials.count }

    package func contains(_ serial: [UInt8]) -> Bool { serials.contains(serial) }

    /// Whether an authority that may sign lists has signed this one.
    package func isSigned(by authority: DocumentCertificate) -> Bool {
        SignedObject.revocationList.rule.permits(authority)
            && authority.check(signature, ofObject: signedPart, algorithm: signatureAlgorithm) == .right
    }
}

/// The defects of document signers that a country has published. BSI TR-03129, ICAO 9303-12 9.
package struct DefectList: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        let issuer: DistinguishedName
        let serial: [UInt8]
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
            return Entry(issuer: try DistinguishedName(signer[0].object), serial: signer[1].magnitude, defects: defects)
        }
    }

    /// The defects of a signer; empty if it has none.
    package func defects(of certificate: DocumentCertificate) -> [[UInt8]] {
        entries.filter { $0.issuer.hasParts(of: certificate.issuer) && $0.serial == certificate.serial }.flatMap(
            \.defects
        )
    }
}

extension Malformed {
    static let criticalRule = Malformed("it has a critical rule that badged does not know")
}
