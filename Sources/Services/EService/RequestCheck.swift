// SPDX-License-Identifier: GPL-3.0-or-later
import EID

/// The judgement on EAC1: what can be said of a service before a card is there. TR-03124-1, 2.7.3.
struct RequestCheck {
    let configuration: EServiceConfiguration
    let isDeveloperMode: Bool
    /// Of the tcTokenURL as it was given, not as it was redirected.
    let origin: WebAddress.Origin
    /// The servers' certificates so far, DER.
    let connections: [[UInt8]]

    /// What stands after all checks.
    struct Outcome {
        let request: AuthenticationRequest
        /// Which certificates connections may show from now on.
        let listed: TLSGuard.Listed
    }

    func judge(_ input: EAC1Input) throws(EServiceFailure) -> Outcome {
        let terminal = try only(.terminal, in: input)
        let issuer = try only(.documentVerifier, in: input)
        let pool = try preVerify(terminal, input)
        let description = try describe(terminal, input)
        let listed = try listed(description, issuer)
        return Outcome(
            request: AuthenticationRequest(
                terminalCertificate: terminal,
                documentVerifier: issuer,
                description: description,
                requiredCHAT: input.requiredCHAT,
                optionalCHAT: input.optionalCHAT,
                auxiliaryData: input.auxiliaryData,
                transactionInfo: input.transactionInfo,
                acceptedEIDTypes: input.acceptedEIDTypes,
                certificates: pool
            ),
            listed: listed
        )
    }

    /// Throws what developer mode only logs.
    private func forgivable(_ failure: EServiceFailure) throws(EServiceFailure) {
        guard isDeveloperMode else { throw failure }
        configuration.log("developer mode: \(failure.reason.rawValue) \(failure.detail)")
    }

    // MARK: Certificates for the card

    private enum Holder { case terminal, documentVerifier }

    /// Exactly one certificate of the service and one of its issuer have to be there.
    private func only(_ holder: Holder, in input: EAC1Input) throws(EServiceFailure) -> CVCertificate {
        let found = input.certificates.filter { certificate in
            guard certificate.chat.terminalType == .authenticationTerminal else { return false }
            return switch (holder, certificate.chat.role) {
            case (.terminal, .terminal): true
            case (.documentVerifier, .documentVerifierOfficial), (.documentVerifier, .documentVerifierNonOfficial): true
            default: false
            }
        }
        if found.count == 1, let certificate = found.first { return certificate }
        switch holder {
        case .terminal:
            throw EServiceFailure(
                found.isEmpty ? .extractCVCsFromEAC1ATMissing : .extractCVCsFromEAC1NoUniqueAT,
                .noUniqueTerminalCertificate
            )
        case .documentVerifier:
            throw EServiceFailure(
                found.isEmpty ? .extractCVCsFromEAC1DVMissing : .extractCVCsFromEAC1NoUniqueDV,
                .noUniqueDocumentVerifier
            )
        }
    }

    /// Checks the terminal's chain, keeps its link certificates, and gives all that chains for a card can be made of.
    private func preVerify(
        _ terminal: CVCertificate,
        _ input: EAC1Input
    ) throws(EServiceFailure) -> CVCertificatePool {
        // The service's own first: the pool is bounded.
        var pool = CVCertificatePool(terminal: terminal, input.certificates)
        pool.add(configuration.linkCertificates?.load() ?? [])
        pool.add(configuration.trustAnchors.links)
        let today = configuration.today()
        let verified = try verify(pool, on: today)
        guard !isDeveloperMode || !verified.isProductive else {
            throw EServiceFailure(.preVerificationNoTestEnvironment, .productiveInDeveloperMode)
        }
        let links = verified.chain.filter { $0.chat.role == .cvca }
        if let store = configuration.linkCertificates, !store.save(links, today: today) {
            configuration.warn("link certificates could not be kept")
        }
        return pool
    }

    private func verify(
        _ pool: CVCertificatePool,
        on day: CVDate?
    ) throws(EServiceFailure) -> TrustAnchors.Verified {
        do throws(TrustAnchors.Refusal) {
            return try configuration.trustAnchors.verify(pool, on: day)
        } catch {
            switch error {
            case .noChain:
                throw EServiceFailure(.preVerificationInvalidCertificateChain, .certificateChain)
            case .signature:
                throw EServiceFailure(.preVerificationInvalidCertificateSignature, .certificateSignature)
            case .expired:
                try forgivable(EServiceFailure(.preVerificationCertificateExpired, .certificateExpired))
                return try verify(pool, on: nil)
            }
        }
    }

    // MARK: The description

    private func describe(
        _ terminal: CVCertificate,
        _ input: EAC1Input
    ) throws(EServiceFailure) -> CertificateDescription {
        guard let bytes = input.description else {
            throw EServiceFailure(.certificateCheckFailedNoDescription, .noCertificateDescription)
        }
        let description: CertificateDescription
        do throws(CVCertificateError) {
            description = try CertificateDescription(bytes)
        } catch {
            throw EServiceFailure(.certificateCheckFailedNoDescription, .noCertificateDescription, detail: "\(error)")
        }
        guard let url = description.subjectURL, !url.isEmpty else {
            throw EServiceFailure(.certificateCheckFailedNoSubjectURLInDescription, .noSubjectURL)
        }
        if !description.belongs(to: terminal) {
            try forgivable(EServiceFailure(.certificateCheckFailedHashMismatch, .descriptionHashMismatch))
        }
        if WebAddress(url)?.origin != origin {
            try forgivable(
                EServiceFailure(.certificateCheckFailedSameOriginPolicyViolation, .sameOriginViolation, detail: url)
            )
        }
        return description
    }

    /// The hashes are made with the hash function of the issuer's certificate.
    private func listed(
        _ description: CertificateDescription,
        _ issuer: CVCertificate
    ) throws(EServiceFailure) -> TLSGuard.Listed {
        let failure = EServiceFailure(.certificateCheckFailedHashMissingInDescription, .certificateNotListed)
        // An issuer's certificate whose key is for something else has signed nothing here.
        guard let digest = issuer.digest else { throw failure }
        let listed = TLSGuard.Listed(digest: digest, hashes: Set(description.communicationCertificates))
        if !connections.allSatisfy(listed.contains) { try forgivable(failure) }
        return listed
    }
}
