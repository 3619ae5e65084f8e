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
        /// Whether the list can be used; otherwise it is only known that there is one.
        let isUsable: Bool
    }

    /// A revocation list or a defect list that is there and cannot be used: what it revokes is not known.
    package struct UnusableList: Sendable, Equatable {
        /// The file in which it is.
        package let place: String
        /// Why it cannot be used.
        package let fault: Malformed
        /// The countries that it may be about; nil: not known, so all.
        fileprivate let countries: Set<String>?
        /// Whether it is a revocation list: a current one takes its place.
        fileprivate let isRevocationList: Bool

        package var text: String { "\(place): \(fault)" }
    }

    private var roles: [DocumentCertificate: Role] = [:]
    /// The authorities that the administrator has chosen, and those that one of them has certified. The others are known
    /// from a master list alone, and bring no further list.
    private var chosen: Set<DocumentCertificate> = []
    /// The types of mobile documents for which an authority is trusted; one that is not here is trusted for all.
    private var docTypes: [DocumentCertificate: Set<String>] = [:]
    /// The type of the mobile document that is asked about: an authority for other types is then not trusted.
    package var docType: String?
    /// Authorities and links, by their country.
    private var byCountry: [String?: [DocumentCertificate]] = [:]
    /// By the country of their signer.
    private var revocations: [String?: [Revocations]] = [:]
    private var defectLists: [String?: [DefectList]] = [:]
    /// The lists that cannot be used. What they may be about is not called genuine.
    package private(set) var unusableLists: [UnusableList] = []
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
    package static let wrongSignature = Malformed(Phrase("its signature is wrong"))
    package static let notTrusted = Malformed(AuthorityCheck.Reason.unknownAuthority.text)
    package static let notAnAuthority = Malformed(Phrase("it is not the certificate of an authority"))
    package static let unknownRule = Malformed(
        Phrase("it is an authority with a rule that badged cannot apply, such as name constraints")
    )

    /// Why a certificate is not taken as that of an authority.
    static func refusal(of certificate: DocumentCertificate) -> Malformed {
        certificate.isAuthority && certificate.hasUnknownRule ? unknownRule : notAnAuthority
    }

    package static let notChosen = Malformed(
        Phrase("another list has brought the authority of its signer, and nobody has chosen it")
    )
    static let unreadableDefects = Malformed(Phrase("the list of defects cannot be read"))
    static let notValid = Malformed(Phrase("its authority was not valid when it was made"))
    /// About a list that is kept, because an older one must not count in its place.
    package static let unusable = Malformed(Phrase("badged cannot use it, and no older list counts in its place"))

    // MARK: Import

    /// Trusts an authority: a self-signed certificate that the administrator has chosen, or that a list has brought.
    /// `types`: the types of mobile documents for which it is trusted, beside those for which it is already;
    ///   nil for all documents.
    package mutating func trust(
        _ certificate: DocumentCertificate,
        for types: Set<String>? = nil,
        isChosen: Bool = true
    ) throws(Malformed) {
        guard certificate.signsCertificates, certificate.isSelfIssued else { throw Self.refusal(of: certificate) }
        guard certificate.isSelfSigned else { throw Self.wrongSignature }
        insert(certificate, for: types)
        if isChosen { chosen.insert(certificate) }
    }

    /// The types of mobile documents for which an authority is trusted; nil for all.
    package func docTypes(of certificate: DocumentCertificate) -> Set<String>? { docTypes[certificate] }

    private mutating func insert(_ authority: DocumentCertificate, for types: Set<String>?) {
        let isForAll = roles[authority] == .authority && docTypes[authority] == nil
        docTypes[authority] = isForAll ? nil : types.map { $0.union(docTypes[authority] ?? []) }
        insert(authority, .authority)
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

    /// Takes the authorities of a master list, for these types of mobile documents (nil: for all), whose signer a chosen authority has certified, or whose signer's
    /// certificate has the SHA-256 `fingerprint`, which the administrator has compared. By this the administrator has
    /// chosen the signer's authority, too, and none of the others.
    package mutating func add(
        _ list: MasterList,
        at time: Int,
        fingerprint: [UInt8]? = nil,
        for types: Set<String>? = nil
    ) throws(Malformed) -> Added {
        let pinned = list.proofs.first { $0.signer.fingerprint == fingerprint }
        let signer =
            if let pinned { pinned.signer } else { try requireTrust(in: list.proofs, of: .masterList, at: time) }
        let types = docTypes(types, vouchedFor: signer, at: time)
        if let pinned, let objection = objection(to: pinned, at: time) { throw objection }
        var added = Added(skipped: list.malformed)
        for certificate in list.certificates {
            // A certificate that is here already needs no second check.
            let role = roles[certificate] ?? (certificate.isSelfSigned ? .authority : .link)
            switch certificate.signsCertificates ? role : nil {
            case .authority where types?.isEmpty != true:
                added.authorities += 1
                insert(certificate, for: types)
            case .link:
                added.links += 1
                insert(certificate, role)
            case .authority, nil: added.skipped += 1
            }
        }
        if let pinned, let authority = chain(of: pinned.signer, at: time)?.steps.last?.issuer {
            chosen.insert(authority)
        }
        return added
    }

    /// Why nobody can choose the signer of a master list: its authority has revoked it, or its country names its defects.
    package func objection(to proof: SignedData.Proof, at time: Int) -> Malformed? {
        let check = check(proof, of: .masterList, at: time)
        return check.reason == .revoked || check.reason == .defect ? check.fault : nil
    }

    /// What is known against the signer of a master list that was not taken; nil: only that no trusted authority is its
    /// own.
    package func doubt(about proof: SignedData.Proof, at time: Int) -> Malformed? {
        let check = check(proof, of: .masterList, at: time)
        if let fault = check.fault { return check.isOfUnknownAuthority ? nil : fault }
        return isOfChosenAuthority(proof.signer, at: time) ? nil : Self.notChosen
    }

    private func check(_ proof: SignedData.Proof, of object: SignedObject, at time: Int) -> AuthorityCheck {
        judge(proof.claim, as: object, countries: [proof.signer.subject.country ?? ""], at: time)
    }

    /// Takes a link certificate. It is used only if an authority that is trusted has signed it.
    package mutating func addLink(_ certificate: DocumentCertificate) throws(Malformed) {
        guard certificate.signsCertificates else { throw Self.refusal(of: certificate) }
        insert(certificate, .link)
    }

    /// Takes a revocation list that an authority of the same name has signed: one that is trusted, or one that was so
    /// when it signed, by links.
    package mutating func add(_ list: RevocationList) throws(Malformed) {
        let known = authorities(of: list.issuer.country).filter { list.issuer.hasParts(of: $0.subject) }
        guard !known.isEmpty else { throw Self.notTrusted }
        let proven = known.first { list.check(signedBy: $0) == .right }
        guard let signer = proven ?? known.first(where: { list.check(signedBy: $0) == .unsupported }) else {
            throw Self.wrongSignature
        }
        guard isKeyTrusted(of: signer, at: list.thisUpdate) else {
            throw role(of: signer) == .authority ? Self.notValid : Self.notTrusted
        }
        // Each generation of an authority may have its own list.
        let country = signer.subject.country
        guard revocations[country]?.contains(where: { $0.list == list }) != true else { return }
        let isUsable = proven != nil && list.scope != .unknown
        revocations[country, default: []].append(Revocations(list: list, signer: signer, isUsable: isUsable))
    }

    /// Whether a list was taken and says nothing: it has a rule or an algorithm that badged does not know.
    package func isUnusable(_ list: RevocationList) -> Bool {
        revocations(of: list.issuer.country).contains { $0.list == list && !$0.isUsable }
    }

    /// Takes a defect list of a country.
    package mutating func addDefects(_ signed: SignedData, at time: Int) throws(Malformed) {
        guard let proofs = try? signed.proofs(of: .defectList) else { throw Self.wrongSignature }
        let signer = try requireTrust(in: proofs, of: .defectList, at: time)
        guard let list = try? DefectList(content: signed.content) else { throw Self.unreadableDefects }
        defectLists[signer.subject.country, default: []].append(list)
    }

    /// Judges the signers of a list, which is bound to nothing but its own country.
    /// - Returns: the first one that may sign it.
    private func requireTrust(
        in proofs: [SignedData.Proof],
        of object: SignedObject,
        at time: Int
    ) throws(Malformed) -> DocumentCertificate {
        var fault: Malformed?
        for proof in proofs {
            let signer = proof.signer
            if let wrong = check(proof, of: object, at: time).fault {
                fault = fault ?? wrong
            } else if object == .masterList, !isOfChosenAuthority(signer, at: time) {
                fault = fault ?? Self.notChosen
            } else {
                return signer
            }
        }
        throw fault ?? Self.notTrusted
    }

    /// Takes a revocation list that was fetched from `place`, and notes one that cannot be used.
    package mutating func add(_ list: RevocationList, from place: String) throws(Malformed) {
        var fault: Malformed?
        do throws(Malformed) {
            try add(list)
            if isUnusable(list) { fault = Self.unusable }
        } catch {
            fault = error
        }
        guard let fault else { return }
        if [Self.unusable, Self.wrongSignature].contains(fault) {
            addUnusable(place, fault, countries: list.issuer.country.map { [$0] }, isRevocationList: true)
        }
        throw fault
    }

    /// Notes a list that cannot be used, or a place that may have lists and was not read.
    package mutating func addUnusable(
        _ place: String,
        _ fault: Malformed,
        countries: Set<String>?,
        isRevocationList: Bool = false
    ) {
        let list = UnusableList(
            place: place,
            fault: fault,
            countries: countries,
            isRevocationList: isRevocationList
        )
        if !unusableLists.contains(list) { unusableLists.append(list) }
    }

    /// Notes a file that cannot be read, if it may have a list. The name may say of which country.
    /// - Parameters:
    ///   - place: the name of the file, perhaps in a folder inside.
    ///   - content: what is in it; nil if that is not known.
    ///   - fault: why it cannot be read.
    package mutating func addUnreadable(_ place: String, _ content: [UInt8]?, _ fault: Malformed) {
        let name = place.split(separator: "/").last.map(String.init) ?? place
        guard DocumentAnchorFile.mayRevoke(name, content) else { return }
        addUnusable(place, fault, countries: DocumentAnchorFile.country(ofName: name).map { [$0] })
    }

    /// Forgets what was noted about files with these names, because they are read again.
    mutating func forgetUnusable(in places: Set<String>) {
        unusableLists.removeAll { places.contains($0.place) }
    }

    /// The lists that may be about what this authority has signed. `revocation`: what the other lists say about it.
    func unusableLists(about authority: DocumentCertificate, _ revocation: Revocation) -> [UnusableList] {
        unusableLists.filter { list in
            guard list.countries?.contains(authority.subject.country ?? "") != false else { return false }
            return !list.isRevocationList || revocation != .good
        }
    }

    /// Takes certificates of document signers, for files without certificates. They are not trusted by this.
    package mutating func addSigner(_ certificate: DocumentCertificate) { signers.append(certificate) }

    // MARK: What is known

    /// nil: the certificate is not here.
    package func role(of certificate: DocumentCertificate) -> Role? {
        guard let docType, let types = docTypes[certificate], !types.contains(docType) else {
            return roles[certificate]
        }
        return nil
    }

    /// Whether the administrator has chosen an authority, or one that has certified it; otherwise a list has brought it.
    package func isChosen(_ certificate: DocumentCertificate) -> Bool { chosen.contains(certificate) }

    /// The authorities and links of a country.
    func authorities(of country: String?) -> [DocumentCertificate] { byCountry[country] ?? [] }

    func revocations(of country: String?) -> [Revocations] { revocations[country] ?? [] }

    /// The defects of a signer that its own country has published, as contents of object identifiers.
    package func defects(of certificate: DocumentCertificate) -> [[UInt8]] { defects(of: certificate.name) }

    func defects(of name: DocumentCertificate.Name) -> [[UInt8]] {
        (defectLists[name.issuer.country] ?? []).flatMap { $0.defects(of: name) }
    }
}
