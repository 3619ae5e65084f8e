// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The authorities that are trusted, and what they have published: links, revocations, defects. ICAO 9303-12.
package struct DocumentAnchors: Sendable {
    /// Self-signed certificates of countries, by the holder's name.
    private var authorities: [DistinguishedName: [DocumentCertificate]] = [:]
    /// Certificates for the next key of an authority, by the holder's name. They are bridges, not anchors.
    private var links: [DistinguishedName: [DocumentCertificate]] = [:]
    private var revocations: [DistinguishedName: [RevocationList]] = [:]
    private var defectLists: [DefectList] = []
    /// Whether a signer counts only if a current revocation list does not have it.
    package var requiresRevocationList = false
    /// The certificates of document signers, for files without certificates.
    package private(set) var signers: [DocumentCertificate] = []

    package init() {}

    package var count: Int { authorities.values.reduce(0) { $0 + $1.count } }
    package var linkCount: Int { links.values.reduce(0) { $0 + $1.count } }
    package var revocationListCount: Int { revocations.values.reduce(0) { $0 + $1.count } }
    package var countries: Set<String> { Set(authorities.keys.compactMap(\.country)) }
    /// The trusted authorities, in no order.
    package var all: [DocumentCertificate] { authorities.values.flatMap(\.self) }

    /// A signature is wrong, or its algorithm is not known.
    package static let wrongSignature = Malformed("its signature is wrong")
    package static let notTrusted = Malformed("no trusted authority has signed it")
    package static let notAnAuthority = Malformed("it is not the certificate of an authority")

    // MARK: Import

    /// Trusts an authority: a self-signed certificate that the administrator has chosen.
    package mutating func trust(_ certificate: DocumentCertificate) throws(Malformed) {
        guard certificate.signsCertificates, certificate.isSelfIssued else { throw Self.notAnAuthority }
        guard certificate.check(signedBy: certificate) == .right else { throw Self.wrongSignature }
        insert(certificate)
    }

    private mutating func insert(_ certificate: DocumentCertificate) {
        guard authorities[certificate.subject]?.contains(certificate) != true else { return }
        authorities[certificate.subject, default: []].append(certificate)
    }

    /// What a master list added.
    package struct Added: Sendable, Equatable {
        package var authorities = 0
        package var links = 0
        /// Certificates that cannot be read, or whose own signature is wrong.
        package var skipped = 0

        package init(authorities: Int = 0, links: Int = 0, skipped: Int = 0) {
            (self.authorities, self.links, self.skipped) = (authorities, links, skipped)
        }
    }

    /// Takes the authorities of a master list whose signer a trusted authority has certified, or whose signer's
    /// certificate has the SHA-256 `fingerprint`, which the administrator has compared.
    package mutating func add(
        _ list: MasterList,
        at time: Int,
        fingerprint: [UInt8]? = nil
    ) throws(Malformed) -> Added {
        let signer = list.proof.signer
        if fingerprint == nil || fingerprint != signer.fingerprint {
            guard signer.validity.contains(time), let issuer = issuer(of: signer),
                issuer.subject.country == signer.subject.country
            else { throw Self.notTrusted }
        }
        var added = Added(skipped: list.malformed)
        for certificate in list.certificates {
            guard certificate.signsCertificates else {
                added.skipped += 1
                continue
            }
            if certificate.isSelfIssued, certificate.check(signedBy: certificate) == .right {
                insert(certificate)
                added.authorities += 1
            } else if !certificate.isSelfIssued || certificate.authorityKeyID != certificate.subjectKeyID {
                insertLink(certificate)
                added.links += 1
            } else {
                added.skipped += 1
            }
        }
        return added
    }

    /// Takes a link certificate. It is used only if an authority that is trusted has signed it.
    package mutating func addLink(_ certificate: DocumentCertificate) throws(Malformed) {
        guard certificate.signsCertificates else { throw Self.notAnAuthority }
        insertLink(certificate)
    }

    private mutating func insertLink(_ certificate: DocumentCertificate) {
        guard links[certificate.subject]?.contains(certificate) != true else { return }
        links[certificate.subject, default: []].append(certificate)
    }

    /// Takes a revocation list that a trusted authority of the same name has signed.
    package mutating func add(_ list: RevocationList) throws(Malformed) {
        guard let known = authorities[list.issuer], !known.isEmpty else { throw Self.notTrusted }
        guard known.contains(where: list.isSigned) else { throw Self.wrongSignature }
        // Each generation of an authority may have its own list.
        guard revocations[list.issuer]?.contains(list) != true else { return }
        revocations[list.issuer, default: []].append(list)
    }

    /// Takes a defect list whose signer a trusted authority has certified.
    package mutating func addDefects(_ signed: SignedData, at time: Int) throws(Malformed) {
        guard let proof = try? signed.verify(contentType: DefectList.contentType) else { throw Self.wrongSignature }
        guard proof.signer.validity.contains(time), issuer(of: proof.signer) != nil else { throw Self.notTrusted }
        guard let list = try? DefectList(content: signed.content) else {
            throw Malformed("the list of defects cannot be read")
        }
        defectLists.append(list)
    }

    /// Takes certificates of document signers, for files without certificates. They are not trusted by this.
    package mutating func addSigner(_ certificate: DocumentCertificate) { signers.append(certificate) }

    /// What a certificate is here.
    package enum Role: Sendable { case authority, link }

    /// nil: the certificate is not here.
    package func role(of certificate: DocumentCertificate) -> Role? {
        if authorities[certificate.subject]?.contains(certificate) == true { return .authority }
        return links[certificate.subject]?.contains(certificate) == true ? .link : nil
    }

    // MARK: Search

    /// How the search for an issuer ended.
    package enum Search: Sendable, Equatable {
        case found(DocumentCertificate)
        /// No authority has this name and key.
        case unknown
        /// The authority with this name and key has not signed the certificate.
        case wrongSignature
        /// The algorithm or curve of the authority is not supported.
        case unsupported
    }

    /// The trusted authority that has signed a certificate; nil if there is none.
    package func issuer(of certificate: DocumentCertificate) -> DocumentCertificate? {
        guard case .found(let issuer) = search(for: certificate) else { return nil }
        return issuer
    }

    /// Finds the trusted authority that has signed a certificate: by name and key identifier, by the name alone if the
    /// certificate has no key identifier. Only a right signature counts. ICAO 9303-12 7.1.1.
    package func search(for certificate: DocumentCertificate) -> Search {
        search(for: certificate, depth: 0)
    }

    /// The maximum number of links between a signer and an anchor.
    private static let maximumDepth = 4

    private func search(for certificate: DocumentCertificate, depth: Int) -> Search {
        var result = Search.unknown
        for authority in authorities[certificate.issuer] ?? [] where Self.fits(authority, certificate) {
            switch certificate.check(signedBy: authority) {
            case .right: return .found(authority)
            case .wrong: result = .wrongSignature
            case .unsupported: result = result == .unknown ? .unsupported : result
            }
        }
        guard depth < Self.maximumDepth else { return result }
        for link in links[certificate.issuer] ?? [] where Self.fits(link, certificate) {
            guard link != certificate, certificate.check(signedBy: link) == .right,
                case .found = search(for: link, depth: depth + 1)
            else { continue }
            return .found(link)
        }
        return result
    }

    private static func fits(_ authority: DocumentCertificate, _ certificate: DocumentCertificate) -> Bool {
        guard authority.signsCertificates else { return false }
        guard let wanted = certificate.authorityKeyID, let has = authority.subjectKeyID else { return true }
        return wanted == has
    }

    /// What the revocation lists say about a certificate.
    package enum Revocation: String, Sendable {
        case good = "passed"
        case revoked = "failed"
        /// No list, or only lists whose successor is due.
        case unknown = "notDone"
    }

    package func revocation(of certificate: DocumentCertificate, at time: Int) -> Revocation {
        let lists = revocations[certificate.issuer] ?? []
        if lists.contains(where: { $0.contains(certificate.serial) }) { return .revoked }
        return lists.contains { $0.thisUpdate <= time && $0.nextUpdate.map { time <= $0 } ?? false } ? .good : .unknown
    }

    /// The defects of a signer, as contents of object identifiers.
    package func defects(of certificate: DocumentCertificate) -> [[UInt8]] {
        defectLists.flatMap { $0.defects(of: certificate) }
    }
}
