// SPDX-License-Identifier: GPL-3.0-or-later

/// Who has signed: the one judgement of every signature that a verdict rests on. `SignedObject.rule` says who may sign
/// what. ICAO 9303-11 4.4.3.5, 5.1; 9303-12 7.1.1; RFC 5280 6.1.
extension DocumentAnchors {
    /// Judges the signer of something.
    ///
    /// A signer counts if a chain of authorities leads from a trusted one to it: each has signed the next, for its own
    /// country, with a certificate for that use, is valid at the time, and has not revoked it. The signer itself is for
    /// this use, is valid when it signs and now, and is neither revoked nor known to have defects.
    ///
    /// - Parameters:
    ///   - claim: who has signed, and when. That the signature is right was checked before.
    ///   - object: what was signed.
    ///   - countries: the countries that may sign it; nil if it is not known.
    ///   - type: the type of the document, as its zone has it; nil if it is not known.
    ///   - time: seconds since 1970.
    /// - Returns: passed, failed, or not done: without an authority of these countries, or with an algorithm that is not
    ///   supported.
    package func judge(
        _ claim: SignedData.Claim,
        as object: SignedObject,
        countries: Set<String>?,
        type: String? = nil,
        at time: Int
    ) -> AuthorityCheck {
        let signer = claim.certificate
        var check = AuthorityCheck()
        check.signer = signer.subject.text
        check.until = signer.validity.upperBound
        func end(_ result: CheckResult, _ reason: AuthorityCheck.Reason) -> AuthorityCheck {
            check.result = result
            check.reason = reason
            return check
        }
        // A chain in which nothing is wrong, or else one that tells what is.
        guard let chain = chain(of: signer, at: time) ?? chain(of: signer, at: time, ignoringRules: true),
            let authority = chain.steps.first?.issuer
        else {
            let reason = reasonOfNoChain(for: signer)
            let isProven =
                switch object.rule.naming {
                case .oneOfCountry: reason != .unsupported && hasAuthority(of: countries, signer: signer)
                case .manyOfCountry, .free: reason == .wrongCertificateSignature
                }
            return end(isProven ? .failed : .notDone, reason)
        }
        check.authority = authority.subject.text
        check.issuer = authority
        check.isLabelWrong = claim.isLabelWrong || chain.steps.contains { !$0.isNamed }
        guard object.rule.permits(signer) else { return end(.failed, .notASigner) }
        guard isOfPlace(signer, authority, countries, object.rule), chain.fault != .wrongCountry else {
            return end(.failed, .wrongCountry)
        }
        check.revocation = revocation(of: signer, issuer: authority, at: time)
        // A file may hold another certificate for the key than the one that it names.
        if claim.otherNames.contains(where: { isRevoked($0) }) { check.revocation = .revoked }
        guard check.revocation != .revoked else { return end(.failed, .revoked) }
        let links = zip(chain.steps, chain.steps.dropFirst())
        if links.contains(where: { revocation(of: $0.issuer, issuer: $1.issuer, at: time) != .good }) {
            check.revocation = .unknown
        }
        check.defects = ([signer.name] + claim.otherNames).flatMap { defects(of: $0) }
        guard check.defects.isEmpty else { return end(.failed, .defect) }
        // Both the time of signing and the time of reading must be within the signer's validity.
        for moment in [claim.signingTime, time].compactMap(\.self) {
            guard moment >= signer.validity.lowerBound else { return end(.failed, .signerNotYetValid) }
            guard moment <= signer.validity.upperBound else { return end(.failed, .signerExpired) }
        }
        if let fault = chain.fault { return end(.failed, fault) }
        // Either the signer or the clock of this host is wrong.
        if let moment = claim.signingTime, moment > time + Self.clockTolerance { return end(.notDone, .signedInFuture) }
        guard countries != nil else { return check }
        guard object.rule.isOfDocument else {
            check.result = .passed
            return check
        }
        if let type, let types = signer.documentTypes, !types.contains(where: { Self.covers($0, type) }) {
            // Some states have one signer for passports and cards, and list only passports.
            check.lacksDocumentType = Self.isOfHolder(type) && types.contains { Self.covers($0, "P") }
            guard check.lacksDocumentType else { return end(.failed, .wrongDocumentType) }
        }
        check.unusableLists = unusableLists(about: authority, check.revocation).map(\.text)
        guard check.revocation == .good || !requiresRevocationList else { return end(.notDone, .noRevocationList) }
        guard check.unusableLists.isEmpty else { return end(.notDone, .unusableList) }
        check.result = .passed
        return check
    }

    /// By how much the clocks of signers and hosts may differ: a time of another zone that was written as UTC.
    private static let clockTolerance = 86_400

    /// Judges those who have signed one file, each for itself. The first one that passes counts; without one, what is
    /// wrong with a signer comes before what is not known about another one.
    /// - Returns: the signer that counts, and the result; nil for no signer.
    func judge(
        _ claims: [SignedData.Claim],
        as object: SignedObject,
        countries: Set<String>?,
        type: String?,
        at time: Int
    ) -> (claim: SignedData.Claim, check: AuthorityCheck)? {
        func rank(_ check: AuthorityCheck) -> Int {
            switch (check.result, check.reason) {
            case (.passed, _): 0
            // Nothing is wrong, and the country of the document or what a list says is not known.
            case (.notDone, nil), (.notDone, .unusableList): 1
            case (.failed, .unknownAuthority): 3
            case (.failed, _): 2
            case (.notDone, _), (.absent, _): 4
            }
        }
        return claims.map { ($0, judge($0, as: object, countries: countries, type: type, at: time)) }
            .min { rank($0.1) < rank($1.1) }
    }

    /// Whether a signer is of one of the countries, and of the state of its authority. ISO/IEC 18013-5, B.1.4.
    private func isOfPlace(
        _ signer: DocumentCertificate,
        _ authority: DocumentCertificate,
        _ countries: Set<String>?,
        _ rule: SignedObject.Rule
    ) -> Bool {
        guard let country = signer.subject.country else { return rule.naming == .free }
        guard rule.naming != .manyOfCountry || signer.subject.state == authority.subject.state else { return false }
        return countries?.contains(country) != false
    }

    /// Whether a type that a signer has is that of a zone: `P` is for every type that begins with it. 9303-12 7.1.1.7.
    private static func covers(_ entry: String, _ type: String) -> Bool {
        let name = entry.utf8.filter { (0x41...0x5A).contains($0) }
        return !name.isEmpty && type.utf8.starts(with: name)
    }

    /// Whether a type is that of a passport or card, and not that of a visa. ICAO 9303-4 to 9303-6.
    private static func isOfHolder(_ type: String) -> Bool { type.utf8.first.map("PIAC".utf8.contains) ?? false }

    /// Whether a country that may have signed has a trusted authority. Nothing can be said about the others.
    private func hasAuthority(of countries: Set<String>?, signer: DocumentCertificate) -> Bool {
        let own = signer.subject.country
        // Some states sign with one of several countries, and the signer says with which.
        let asked: [String?] = countries.map { $0.isEmpty || $0.contains(own ?? "") ? [own] : Array($0) } ?? [own]
        return asked.contains { authorities(of: $0).contains { role(of: $0) == .authority } }
    }

    /// Why no authority here has signed a certificate.
    private func reasonOfNoChain(for certificate: DocumentCertificate) -> AuthorityCheck.Reason {
        let named = candidates(for: certificate).filter { $0.isNamed(by: certificate) }
        let checks = named.map { certificate.check(signedBy: $0) }
        if checks.contains(.wrong) { return .wrongCertificateSignature }
        return checks.contains(.unsupported) ? .unsupported : .unknownAuthority
    }

    // MARK: Chains

    /// The authorities that lead from a signer to one that is trusted.
    package struct Chain: Sendable {
        package struct Step: Sendable {
            package let issuer: DocumentCertificate
            /// Whether the certificate names this issuer and its key.
            let isNamed: Bool
        }

        /// The signer's own authority comes first, the trusted one last.
        package fileprivate(set) var steps: [Step]
        /// The first rule that is broken; `wrongCountry` before the others.
        fileprivate var fault: AuthorityCheck.Reason?
    }

    /// The greatest number of links between a signer and an anchor.
    private static let maximumDepth = 8

    /// Whether an authority is trusted, or a chain leads to it. Without a time validity is not looked at.
    package func isTrusted(_ certificate: DocumentCertificate, at time: Int?) -> Bool {
        role(of: certificate) == .authority || chain(of: certificate, at: time) != nil
    }

    /// Whether a chain leads to an authority that the administrator has chosen, and not only to one of a list.
    func isOfChosenAuthority(_ certificate: DocumentCertificate, at time: Int) -> Bool {
        chosenChain(of: certificate, at: time) != nil
    }

    private func chosenChain(of certificate: DocumentCertificate, at time: Int) -> Chain? {
        var visited: Set<DocumentCertificate> = [certificate]
        return chain(of: certificate, time, 0, 0, false, 0, &visited, needsChoice: true)
    }

    /// The types of mobile documents, of those of a file (nil: all), for which the authority counts that vouches for a
    /// certificate; nil for all.
    func docTypes(
        _ types: Set<String>?,
        vouchedFor certificate: DocumentCertificate,
        at time: Int
    ) -> Set<String>? {
        let chain = chosenChain(of: certificate, at: time) ?? chain(of: certificate, at: time)
        let own = chain?.steps.last.flatMap { docTypes(of: $0.issuer) }
        return types.map { own?.intersection($0) ?? $0 } ?? own
    }

    /// Finds a chain in which every signature is right and, unless they are ignored, every rule is kept; nil if there is
    /// none. Without a time validity is not looked at. `nesting` is how many lists of links were asked about one another.
    package func chain(
        of certificate: DocumentCertificate,
        at time: Int?,
        ignoringRules: Bool = false,
        nesting: Int = 0
    ) -> Chain? {
        var visited: Set<DocumentCertificate> = [certificate]
        return chain(of: certificate, time, 0, 0, ignoringRules, nesting, &visited)
    }

    private func chain(
        of certificate: DocumentCertificate,
        _ time: Int?,
        _ depth: Int,
        _ intermediates: Int,
        _ ignoringRules: Bool,
        _ nesting: Int,
        _ visited: inout Set<DocumentCertificate>,
        needsChoice: Bool = false
    ) -> Chain? {
        // Links are of the authority itself; others need its leave, which 9303-12 forbids to give. RFC 5280 6.1.4.
        let below = intermediates + (certificate.isAuthority && !certificate.isLink ? 1 : 0)
        for issuer in candidates(for: certificate) {
            let fault = fault(of: issuer, certificate, time, below, nesting)
            guard ignoringRules || fault == nil, !visited.contains(issuer),
                certificate.check(signedBy: issuer) == .right
            else { continue }
            let step = Chain.Step(issuer: issuer, isNamed: issuer.isNamed(by: certificate))
            if role(of: issuer) == .authority, !needsChoice || isChosen(issuer) {
                return Chain(steps: [step], fault: fault)
            }
            guard depth < Self.maximumDepth else { continue }
            visited.insert(issuer)
            let found = chain(
                of: issuer,
                time,
                depth + 1,
                below,
                ignoringRules,
                nesting,
                &visited,
                needsChoice: needsChoice
            )
            guard var rest = found else { continue }
            rest.steps.insert(step, at: 0)
            rest.fault = rest.fault == .wrongCountry ? rest.fault : fault ?? rest.fault
            return rest
        }
        return nil
    }

    /// How many authorities with another name or key identifier are tried. A country has a few dozen.
    private static let maximumUnnamed = 64

    /// Who may have signed a certificate: the authorities and links of the country of its issuer. Those with the name and
    /// the key come first; a name that is written in another way hides none.
    private func candidates(for certificate: DocumentCertificate) -> [DocumentCertificate] {
        func rank(_ issuer: DocumentCertificate) -> Int {
            let hasName = issuer.subject == certificate.issuer
            let hasKey = issuer.mayHaveKey(of: certificate)
            return (hasName ? 0 : 2) + (hasKey ? 0 : 1)
        }
        let ranked = authorities(of: certificate.issuer.country).map { ($0, rank($0)) }
        let others = ranked.filter { $0.1 > 0 }.sorted { $0.1 < $1.1 }.prefix(Self.maximumUnnamed)
        return (ranked.filter { $0.1 == 0 } + others).map(\.0)
    }

    /// The rule that one step of a chain breaks; nil if it keeps all.
    private func fault(
        of issuer: DocumentCertificate,
        _ certificate: DocumentCertificate,
        _ time: Int?,
        _ below: Int,
        _ nesting: Int
    ) -> AuthorityCheck.Reason? {
        guard issuer.subject.country == certificate.subject.country else { return .wrongCountry }
        guard SignedObject.certificate.rule.permits(issuer) else { return .unknownAuthority }
        guard below <= issuer.pathLength ?? 0 else { return .unknownAuthority }
        if let time {
            guard time >= issuer.validity.lowerBound else { return .authorityNotYetValid }
            guard time <= issuer.validity.upperBound else { return .authorityExpired }
        }
        // A signer's own revocation is a result of its own.
        guard certificate.isAuthority, let time else { return nil }
        return revocation(of: certificate, issuer: issuer, at: time, nesting: nesting) == .revoked ? .revoked : nil
    }

    // MARK: Revocation

    /// Whether a certificate of an authority's key counts: this one, or another one that may sign lists, and that was
    /// valid at the time.
    func isKeyTrusted(of signer: DocumentCertificate, at time: Int, nesting: Int = 0) -> Bool {
        authorities(of: signer.subject.country).contains { other in
            guard other.publicKeyInfo == signer.publicKeyInfo, other.subject.hasParts(of: signer.subject),
                SignedObject.revocationList.rule.permits(other), other.validity.contains(time)
            else { return false }
            return role(of: other) == .authority || chain(of: other, at: time, nesting: nesting) != nil
        }
    }

    /// What the revocation lists say about a certificate.
    package enum Revocation: String, Sendable {
        case good = "passed"
        case revoked = "failed"
        /// No list, only lists whose successor is due, only lists about a part, or a newer one that cannot be used.
        case unknown = "notDone"
    }

    /// Asks the lists of the authority that has signed a certificate, whichever of its keys has signed them, and those
    /// that the same key has signed under another name.
    package func revocation(
        of certificate: DocumentCertificate,
        issuer: DocumentCertificate,
        at time: Int,
        nesting: Int = 0
    ) -> Revocation {
        // The list of a link may say something about links, too.
        guard nesting < 2 else { return .unknown }
        func isOwn(_ list: RevocationList) -> Bool {
            list.issuer.hasParts(of: issuer.subject) || list.issuer.hasParts(of: certificate.issuer)
        }
        let entries = revocations(of: issuer.subject.country).filter { entry in
            guard isOwn(entry.list) || entry.signer.publicKeyInfo == issuer.publicKeyInfo else { return false }
            return isKeyTrusted(of: entry.signer, at: entry.list.thisUpdate, nesting: nesting + 1)
        }
        if entries.contains(where: { $0.isUsable && $0.list.contains(certificate.serial) }) { return .revoked }
        let own = entries.filter { isOwn($0.list) }
        let complete = own.filter { $0.isUsable && $0.list.scope == .complete && $0.list.thisUpdate <= time }
        // A later list with a smaller number does not take the place of an earlier one: then both must be current.
        let newest = complete.filter { entry in
            !complete.contains { other in
                // Each key counts its lists for itself.
                let isOfKey = other.signer.publicKeyInfo == entry.signer.publicKeyInfo
                return other.list.thisUpdate > entry.list.thisUpdate && (!isOfKey || other.list.follows(entry.list))
            }
        }
        guard let latest = newest.map(\.list.thisUpdate).max(), newest.allSatisfy({ $0.list.isCurrent(at: time) }),
            !own.contains(where: { !$0.isUsable && $0.list.thisUpdate >= latest })
        else { return .unknown }
        return .good
    }

    /// Whether a list of the authority with this name, or of one with the same key, has a certificate.
    private func isRevoked(_ name: DocumentCertificate.Name) -> Bool {
        let country = name.issuer.country
        let keys = authorities(of: country).filter { $0.subject.hasParts(of: name.issuer) }.map(\.publicKeyInfo)
        return revocations(of: country).contains { entry in
            entry.isUsable && entry.list.contains(name.serial)
                && (entry.list.issuer.hasParts(of: name.issuer) || keys.contains(entry.signer.publicKeyInfo))
                && isKeyTrusted(of: entry.signer, at: entry.list.thisUpdate)
        }
    }
}

extension DocumentCertificate {
    /// Whether the certificate is for the next key of its issuer: under the same name, or under a new one that it says
    /// is new. ICAO 9303-12 5.
    fileprivate var isLink: Bool { isSelfIssued || hasChangedName }

    /// Whether a certificate names this authority as its issuer.
    fileprivate func isNamed(by certificate: DocumentCertificate) -> Bool {
        subject == certificate.issuer && mayHaveKey(of: certificate)
    }

    /// Whether this key is the one that a certificate names as its issuer's.
    fileprivate func mayHaveKey(of certificate: DocumentCertificate) -> Bool {
        guard let wanted = certificate.authorityKeyID, let has = subjectKeyID else { return true }
        return wanted == has
    }
}
