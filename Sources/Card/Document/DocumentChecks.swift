// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// How a check ended. What was not done is never passed.
package enum CheckResult: String, Sendable {
    case passed
    case failed
    /// The document lacks what the check needs.
    case absent
    case notDone
}

/// Whether the files are those that were signed.
package struct HashCheck: Sendable, Equatable {
    package enum Reason: String, Sendable {
        case wrongHash
        /// A file that was read has no hash in EF.SOD.
        case notSigned
        case malformed
        /// The hash algorithm or the version of EF.SOD is not supported. The check is not done.
        case unsupported
        /// The chip gave no answer of its own, twice. The check is not done.
        case disturbed
    }

    package var result = CheckResult.notDone
    package var reason: Reason?
    /// The data groups that the reason is about.
    package var groups: [Int] = []

    package init(result: CheckResult = .notDone, reason: Reason? = nil, groups: [Int] = []) {
        self.result = result
        self.reason = reason
        self.groups = groups
    }
}

/// Whether the signer of EF.SOD has signed the hashes.
package struct SignatureCheck: Sendable, Equatable {
    package enum Reason: String, Sendable {
        case wrongSignature
        case wrongDigest
        case malformed
        /// The algorithm or the key is not supported. The check is not done.
        case unsupported
        /// EF.SOD has no certificate of its signer, and it was not imported. The check is not done.
        case noSigner
        /// The chip gave no answer of its own, twice. The check is not done.
        case disturbed
    }

    package var result = CheckResult.notDone
    package var reason: Reason?
    package var algorithm: String?

    package init() {}

    /// What to do next.
    package var advice: Phrase? {
        reason == .noSigner
            ? "import the certificates of the country's signers: sudo badgectl documents anchors import FILE.ldif" : nil
    }
}

/// Whether a trusted authority has certified the signer for this document.
package struct AuthorityCheck: Sendable, Equatable {
    package enum Reason: String, Sendable, CaseIterable {
        case unknownAuthority
        case wrongCertificateSignature
        case signerExpired
        case signerNotYetValid
        case authorityExpired
        case authorityNotYetValid
        case revoked
        case notASigner
        case wrongCountry
        case wrongDocumentType
        /// The algorithm or the key is not supported. The check is not done.
        case unsupported
        case defect
        /// The signer says that it has signed in the future: it or the clock of this host is wrong. The check is not done.
        case signedInFuture
        /// The configuration wants a current revocation list, and there is none. The check is not done.
        case noRevocationList
        /// A revocation list or a defect list that may name the signer cannot be used. The check is not done.
        case unusableList

        /// For people who import a list.
        package var text: Phrase {
            switch self {
            case .unknownAuthority: "no trusted authority has signed it"
            case .wrongCertificateSignature: "the certificate of its signer has a wrong signature"
            case .signerExpired: "the certificate of its signer has expired"
            case .signerNotYetValid: "the certificate of its signer is not valid yet"
            case .authorityExpired: "the authority of its signer has expired"
            case .authorityNotYetValid: "the authority of its signer is not valid yet"
            case .revoked: "its signer is revoked"
            case .notASigner: "its signer may not sign it"
            case .wrongCountry: "its signer is of another country"
            case .wrongDocumentType: "its signer is for other documents"
            case .unsupported: "the algorithm of its signer is not supported"
            case .defect: "its signer has defects"
            case .signedInFuture: "it says that it was signed in the future"
            case .noRevocationList: "no current revocation list says that its signer is good"
            case .unusableList: "a revocation list or defect list that may name its signer cannot be used"
            }
        }
    }

    package var result = CheckResult.notDone
    package var reason: Reason?
    /// The names of the signer and of its authority, for people.
    package var signer: String?
    package var authority: String?
    /// The authority that has certified the signer.
    package var issuer: DocumentCertificate?
    /// The last second of the signer's certificate, since 1970.
    package var until: Int?
    package var revocation = DocumentAnchors.Revocation.unknown
    /// The object identifiers of the signer's defects, as contents.
    package var defects: [[UInt8]] = []
    /// The lists that may name the signer and cannot be used, each with the reason.
    package var unusableLists: [String] = []

    /// Whether it did not pass because no authority that is trusted is that of the signer.
    package var isOfUnknownAuthority: Bool {
        result != .passed && (reason == nil || reason == .unknownAuthority)
    }

    /// Why the signer does not count, for people who import a list; nil: it does.
    package var fault: Malformed? {
        guard result != .passed else { return nil }
        return reason.map { Malformed($0.text) } ?? DocumentAnchors.notTrusted
    }

    /// What to do next.
    package var advice: Phrase? {
        guard result == .notDone else { return nil }
        return switch reason {
        case .unknownAuthority:
            "import the authorities of the document's country: sudo badgectl documents anchors import FILE"
        case .signedInFuture: "check the date and time of this computer"
        case .noRevocationList:
            "import a current revocation list of the country: sudo badgectl documents anchors import FILE.crl"
        case .unusableList:
            "remove or repair what cannot be used, as GET_HEALTH says, then import the revocation or defect list again"
        default: nil
        }
    }

    /// Whether the signer of a card lists passports only. Some states have one signer for both, so it is no fault.
    package var lacksDocumentType = false

    package init() {}

    /// Whether a name or key identifier on the way differs from the one that it means. The keys have proven who has
    /// signed.
    package var isLabelWrong = false
}

/// Whether the chip is the one that the document was made with.
package struct ChipCheck: Sendable, Equatable {
    package enum Method: String, Sendable {
        case mapping = "PACE-CAM"
        case chipAuthentication = "CA"
        case activeAuthentication = "AA"
    }

    package enum Reason: String, Sendable {
        case wrongSignature
        case wrongKey
        case refused
        case malformed
        case unsupported
        /// Nobody who is trusted has signed the key.
        case unknownAuthority
        /// The key is not that of this document: a chip of another one could have given the same proof.
        case notBound
        /// The chip gave no answer of its own, twice. The proof is not done.
        case disturbed
    }

    package struct Run: Sendable, Equatable {
        package let method: Method
        package let result: CheckResult
        package let reason: Reason?

        init(_ method: Method, _ result: CheckResult, _ reason: Reason? = nil) {
            self.method = method
            self.result = result
            self.reason = reason
        }

        /// Whether a disturbed answer of the chip may have caused this.
        var mayBeDisturbed: Bool {
            guard result == .failed else { return false }
            return switch reason {
            case .wrongSignature, .wrongKey, .refused, .malformed: true
            case .unsupported, .unknownAuthority, .notBound, .disturbed, nil: false
            }
        }
    }

    package var runs: [Run] = []
    /// Whether it is known what the document offers: the list of its groups was read.
    package var isOfferKnown = false

    /// Adds a method; active authentication is the last one.
    mutating func add(_ run: Run) {
        runs.insert(run, at: runs.firstIndex { $0.method == .activeAuthentication } ?? runs.endIndex)
    }

    /// Whether a method was tried.
    func has(_ method: Method) -> Bool { runs.contains { $0.method == method } }

    /// Chip authentication shows that the chip is that of this document, and so does then the mapping.
    mutating func bindMapping() {
        guard runs.contains(where: { $0.method == .chipAuthentication && $0.result == .passed }),
            let index = runs.firstIndex(where: { $0.method == .mapping && $0.reason == .notBound })
        else { return }
        runs[index] = Run(.mapping, .passed)
    }

    /// Failed if one method failed, passed if one passed. A chip that does not answer to one method may be a copy that
    /// has only the key of another one.
    package var result: CheckResult {
        if runs.contains(where: { $0.result == .failed }) { return .failed }
        if runs.contains(where: { $0.reason == .disturbed }) { return .notDone }
        if runs.contains(where: { $0.result == .passed }) { return .passed }
        return runs.isEmpty && isOfferKnown ? .absent : .notDone
    }
}

/// Whether the content of the document is plausible.
package struct ContentCheck: Sendable, Equatable {
    package enum Finding: Sendable, Equatable {
        case checkDigit(MachineReadableZone.Field)
        case expired
        /// The zone that opened the document differs from DG1.
        case mrzDiffers
        /// EF.CardAccess differs from DG14: somebody in between may have removed PACE.
        case accessDiffers
        /// DG1 has no zone, or a date that no calendar has.
        case malformed
        /// EF.COM differs from EF.SOD. It is not signed, so this is no fault.
        case comDiffers
        /// The format of a picture is not known. This is no fault.
        case imageUnknown
        /// EF.SOD or a certificate names its signer in another way than the signer's certificate. This is no fault.
        case labelDiffers
        /// A check needs an algorithm, a key or a version that is not supported, and is not done. This is no fault.
        case unsupported
        /// The chip sends its files to everybody. This is no fault: old documents have no access control.
        case noAccessControl

        var isFault: Bool {
            switch self {
            case .checkDigit, .expired, .mrzDiffers, .accessDiffers, .malformed: true
            case .comDiffers, .imageUnknown, .labelDiffers, .unsupported, .noAccessControl: false
            }
        }
    }

    package var isDone = false
    package var findings: [Finding] = []

    package var result: CheckResult {
        guard isDone else { return .notDone }
        return findings.contains(where: \.isFault) ? .failed : .passed
    }
}

package struct DocumentChecks: Sendable, Equatable {
    package var hashes = HashCheck()
    package var signature = SignatureCheck()
    package var authority = AuthorityCheck()
    package var chip = ChipCheck()
    package var document = ContentCheck()

    /// Adds the findings that follow from the checks.
    mutating func addFindings() {
        if authority.isLabelWrong { document.findings.append(.labelDiffers) }
        let isUnsupported =
            hashes.reason == .unsupported || signature.reason == .unsupported || authority.reason == .unsupported
            || chip.runs.contains { $0.reason == .unsupported }
        if isUnsupported { document.findings.append(.unsupported) }
    }

    package enum Verdict: String, Sendable {
        /// Every check has passed.
        case genuine
        /// Every check has passed, but the document has nothing that proves its chip.
        case genuineCopyable
        /// Nothing has failed, and something was not done.
        case unverified
        case suspect
    }

    package var verdict: Verdict {
        let data = [hashes.result, signature.result, authority.result, document.result]
        if data.contains(.failed) || chip.result == .failed { return .suspect }
        guard data.allSatisfy({ $0 == .passed }) else { return .unverified }
        return switch chip.result {
        case .passed: .genuine
        case .absent: .genuineCopyable
        case .notDone, .failed: .unverified
        }
    }
}
