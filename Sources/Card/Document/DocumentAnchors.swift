// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The authorities that are trusted, and what they have published: links, revocations, defects. ICAO 9303-12.
/// `judge` is the only place where they are asked.
package struct DocumentAnchors: Sendable {
    /// What a certificate is here.
    package enum Role: Sendable {
        /// A self-signed certificate that is trusted.
        case authority
        /// A certificate for the next key of an authority: a bridge, and no anchor.
        case link
    }

    /// A list, and the authority that has signed it.
    struct Revocations: Sendable {
        let list: RevocationList
        let signer: DocumentCertificate
    }

    private var roles: [DocumentCertificate: Role] = [:]
    /// Authorities and links, by their country.
    private var byCountry: [String?: [DocumentCertificate]] = [:]
    /// By the country of their signer.
    private var revocations: [String?: [Revocations]] = [:]
    private var defectLists: [String?: [DefectList]] = [:]
    /// Whether a signer counts only if a current revocation list does not have it.
    package var requiresRevocationList = false
    /// The certificates of document signers, for files without certificates.
    package private(set) var signers: [DocumentCertificate] = []

    package init() {}

    package var count: Int { all.count }
    package var linkCount: Int { roles.values.count { $0 == .link } }
    package var revocationListCount: Int { revocations.values.reduce(0) { $0 + $1.count } }
    package var countries: Set<String> { Set(all.compactMap(\.subject.country)) }
    /// The trusted authorities, in no order.
    package var all: [DocumentCertificate] { roles.filter { $0.value == .authority }.map(\.key) }

    /// A signature is wrong, or its algorithm is not known.
    package static let wrongSignature = Malformed("its signature is wrong")
    package static let notTrusted = Malformed(AuthorityCheck.Reason.unknownAuthority.text)
    package static let notAnAuthority = Malformed("it is not the certificate of an authority")

    // MARK: Import

    /// Trusts an authority: a self-signed certificate that the administrator has chosen.
    package mutating func trust(_ certificate: DocumentCertificate) throws(Malformed) {
        guard certificate.signsCertificates, certificate.isSelfIssued else { throw Self.notAnAuthority }
        guard certificate.isSelfSigned else { throw Self.wrongSignature }
        insert(certificate, .authority)
    }

    private mutating func insert(_ certificate: DocumentCertificate, _ role: Role) {
        // What is trusted stays so.
        guard roles[certificate] == nil else { return }
        roles[certificate] = role
        byCountry[certificate.subject.country, default: []].append(certificate)
    }

    /// What a master list added.
    package struct Added: Sendable, Equatable {
        package var authorities = 0
        package var links = 0
        /// Certificates that cannot be read, or whose own signature is wrong.
        package var skipped = 0

        package init(authorities: Int = 0, links: Int = 0, skipped: Int = 0) {
            self.authorities = authorities
            self.links = links
            self.skipped = skipped
        }
    }

    /// Takes the authorities of a master list whose signer a trusted authority has certified, or whose signer's
    /// certificate has the SHA-256 `fingerprint`, which the administrator has compared.
    package mutating func add(
        _ list: MasterList,
        at time: Int,
        fingerprint: [UInt8]? = nil
    ) throws(Malformed) -> Added {
        if fingerprint == nil || fingerprint != list.proof.signer.fingerprint {
            try requireTrust(in: list.proof, of: .masterList, at: time)
        }
        var added = Added(skipped: list.malformed)
        for certificate in list.certificates {
            // A certificate that is here already needs no second check.
            let role = roles[certificate] ?? (certificate.isSelfSigned ? .authority : .link)
            switch certificate.signsCertificates ? role : nil {
            case .authority: added.authorities += 1
            case .link: added.links += 1
            case nil:
                added.skipped += 1
                continue
            }
            insert(certificate, role)
        }
        return added
    }

    /// Takes a link certificate. It is used only if an authority that is trusted has signed it.
    package mutating func addLink(_ certificate: DocumentCertificate) throws(Malformed) {
        guard certificate.signsCertificates else { throw Self.notAnAuthority }
        insert(certificate, .link)
    }

    /// Takes a revocation list that an authority of the same name has signed: one that is trusted, or one that was so
    /// when it signed, by links.
    package mutating func add(_ list: RevocationList) throws(Malformed) {
        let known = authorities(of: list.issuer.country).filter { list.issuer.hasParts(of: $0.subject) }
        guard !known.isEmpty else { throw Self.notTrusted }
        guard let signer = known.first(where: list.isSigned) else { throw Self.wrongSignature }
        guard isKeyTrusted(of: signer, at: list.thisUpdate) else { throw Self.notTrusted }
        // Each generation of an authority may have its own list.
        let country = signer.subject.country
        guard revocations[country]?.contains(where: { $0.list == list }) != true else { return }
        revocations[country, default: []].append(Revocations(list: list, signer: signer))
    }

    /// Takes a defect list of a country.
    package mutating func addDefects(_ signed: SignedData, at time: Int) throws(Malformed) {
        guard let proof = try? signed.verify(.defectList) else { throw Self.wrongSignature }
        try requireTrust(in: proof, of: .defectList, at: time)
        guard let list = try? DefectList(content: signed.content) else {
            throw Malformed("the list of defects cannot be read")
        }
        defectLists[proof.signer.subject.country, default: []].append(list)
    }

    /// Judges the signer of a list, which is bound to nothing but its own country.
    private func requireTrust(in proof: SignedData.Proof, of object: SignedObject, at time: Int) throws(Malformed) {
        let check = judge(proof.claim, as: object, countries: [proof.signer.subject.country ?? ""], at: time)
        guard check.result == .passed else { throw Malformed(check.reason?.text ?? Self.notTrusted.text) }
    }

    /// Takes certificates of document signers, for files without certificates. They are not trusted by this.
    package mutating func addSigner(_ certificate: DocumentCertificate) { signers.append(certificate) }

    // MARK: What is known

    /// nil: the certificate is not here.
    package func role(of certificate: DocumentCertificate) -> Role? { roles[certificate] }

    /// The authorities and links of a country.
    func authorities(of country: String?) -> [DocumentCertificate] { byCountry[country] ?? [] }

    func revocations(of country: String?) -> [Revocations] { revocations[country] ?? [] }

    /// The defects of a signer that its own country has published, as contents of object identifiers.
    package func defects(of certificate: DocumentCertificate) -> [[UInt8]] {
        (defectLists[certificate.issuer.country] ?? []).flatMap { $0.defects(of: certificate) }
    }
}
