// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import HTTP
import ISO7816
import Text

/// Checks EAC1, as far as a service can be checked without a card. TR-03124-1, 2.7.3.
struct RequestCheck {
    let configuration: EServiceConfiguration
    let isDeveloperMode: Bool
    /// The origin of the tcTokenURL before any redirect.
    let origin: WebAddress.Origin
    /// The TLS certificates of the servers so far, in DER.
    let connections: [[UInt8]]

    /// The result of all checks.
    struct Outcome {
        let request: AuthenticationRequest
        /// The TLS certificates that servers may use from now on.
        let listed: TLSConditions.Listed
    }

    func check(_ input: EAC1Input) throws(EServiceFailure) -> Outcome {
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

    /// Throws the failure; in developer mode it is only logged.
    private func throwUnlessDeveloperMode(_ failure: EServiceFailure) throws(EServiceFailure) {
        guard isDeveloperMode else { throw failure }
        configuration.log("developer mode: \(failure.reason.rawValue) \(failure.detail)")
    }

    // MARK: Certificates for the card

    private enum Holder { case terminal, documentVerifier }

    /// Returns the certificate of the service or of its issuer; there must be exactly one.
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

    /// Checks the terminal's chain, stores its link certificates, and returns the certificates for chains to a card.
    private func preVerify(
        _ terminal: CVCertificate,
        _ input: EAC1Input
    ) throws(EServiceFailure) -> CVCertificatePool {
        // The certificates of the service come first, since the pool is bounded.
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
            configuration.warn("link certificates could not be stored")
        }
        return pool
    }

    private func verify(
        _ pool: CVCertificatePool,
        on day: CVDate?
    ) throws(EServiceFailure) -> TrustAnchors.Verified {
        do throws(TrustAnchors.ChainFault) {
            return try configuration.trustAnchors.verify(pool, on: day)
        } catch {
            switch error {
            case .noChain:
                throw EServiceFailure(.preVerificationInvalidCertificateChain, .certificateChain)
            case .signature:
                throw EServiceFailure(.preVerificationInvalidCertificateSignature, .certificateSignature)
            case .expired:
                try throwUnlessDeveloperMode(EServiceFailure(.preVerificationCertificateExpired, .certificateExpired))
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
        // A text that no issuer has seen is not read.
        guard (try? BERTLV(bytes)) != nil else {
            throw EServiceFailure(.certificateCheckFailedNoDescription, .noCertificateDescription)
        }
        if !CertificateDescription.belongs(bytes, to: terminal) {
            try throwUnlessDeveloperMode(EServiceFailure(.certificateCheckFailedHashMismatch, .descriptionHashMismatch))
        }
        let description = try translating(
            { (error: Malformed) in
                EServiceFailure(.certificateCheckFailedNoDescription, .noCertificateDescription, detail: error.text)
            },
            CertificateDescription(bytes)
        )
        guard let url = description.subjectURL, !url.isEmpty else {
            throw EServiceFailure(.certificateCheckFailedNoSubjectURLInDescription, .noSubjectURL)
        }
        if WebAddress(url)?.origin != origin {
            try throwUnlessDeveloperMode(
                EServiceFailure(.certificateCheckFailedSameOriginPolicyViolation, .sameOriginViolation, detail: url)
            )
        }
        return description
    }

    /// Returns the TLS certificates that the description names, and checks those of the connections so far.
    private func listed(
        _ description: CertificateDescription,
        _ issuer: CVCertificate
    ) throws(EServiceFailure) -> TLSConditions.Listed {
        let failure = EServiceFailure(.certificateCheckFailedHashMissingInDescription, .certificateNotListed)
        // If the issuer's certificate names no hash function, no hash can be compared.
        guard let digest = issuer.digest else { throw failure }
        let listed = TLSConditions.Listed(digest: digest, hashes: Set(description.communicationCertificates))
        if !connections.allSatisfy(listed.contains) { try throwUnlessDeveloperMode(failure) }
        return listed
    }
}
