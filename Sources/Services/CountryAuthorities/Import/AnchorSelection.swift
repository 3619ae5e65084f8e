// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import EID
package import Text

/// Decides which certificates become trust anchors: those with a known fingerprint, and those that a trusted key has
/// signed, along the chain.
package struct AnchorSelection: Sendable {
    /// Why a certificate is trusted.
    package enum Reason: Sendable, Equatable {
        case fingerprint
        /// Signed by the authority with this name.
        case signed(by: String)
        /// A root whose key a link certifies, which the authority with this name has signed.
        case linked(from: String)
    }

    package enum Verdict: Sendable, Equatable {
        case taken(AuthorityUse, Reason)
        /// The folder has the certificate already.
        case present(AuthorityUse)
        /// The certificate is not taken; the text says why, for a message.
        case left(Phrase)
    }

    package struct Decision: Sendable, Equatable {
        package let certificate: CVCertificate
        package let place: String
        package let verdict: Verdict
    }

    /// In the order in which they can be written: each certificate comes after the one that has signed it.
    package let decisions: [Decision]

    private struct Trusted {
        let certificate: CVCertificate
        /// The curve of its key, which the certificate may inherit from its issuer.
        let curve: Curve?
        let use: AuthorityUse
    }

    /// Judges the certificates.
    /// - Parameters:
    ///   - found: the certificates, in any order.
    ///   - known: fingerprints that are trusted, in lower-case digits, and what for.
    ///   - present: the anchors of the folder.
    package init(_ found: [AnchorSources.Found], known: [String: AuthorityUse], present: TrustAnchors) {
        var trusted: [Trusted] = []
        var decisions: [Decision] = []
        var waiting: [AnchorSources.Found] = []
        let old = present.productive.map { ($0, AuthorityUse.productive) } + present.test.map { ($0, .test) }
        trusted += old.map { Trusted(certificate: $0.0, curve: $0.0.publicKey.curve, use: $0.1) }

        for candidate in found {
            let certificate = candidate.certificate
            if let (_, use) = old.first(where: { $0.0 == certificate }) {
                decisions.append(Decision(certificate, candidate.place, .present(use)))
            } else if !certificate.isOfAuthority {
                let text: Phrase = "it is not a certificate of an authority for authentication terminals"
                decisions.append(Decision(certificate, candidate.place, .left(text)))
            } else if let use = known[Self.fingerprint(of: certificate)] {
                trusted.append(Trusted(certificate: certificate, curve: certificate.publicKey.curve, use: use))
                let isPresent = present.links.contains(certificate)
                decisions.append(
                    Decision(certificate, candidate.place, isPresent ? .present(use) : .taken(use, .fingerprint))
                )
            } else {
                waiting.append(candidate)
            }
        }
        // A link in the folder may connect a new certificate to a root.
        waiting += present.links.filter { link in !found.contains { $0.certificate == link } }
            .map { AnchorSources.Found(certificate: $0, place: "") }

        // Each pair is checked once, since only new trusted certificates are tried in each round.
        var next = trusted
        while !next.isEmpty {
            var added: [Trusted] = []
            waiting.removeAll { candidate in
                let certificate = candidate.certificate
                guard
                    let issuer = next.first(where: {
                        $0.certificate.holderReference == certificate.authorityReference
                            && certificate.isSigned(by: $0.certificate, inheriting: $0.curve)
                    })
                else { return false }
                let curve = certificate.publicKey.curve ?? issuer.curve
                added.append(Trusted(certificate: certificate, curve: curve, use: issuer.use))
                let verdict: Verdict =
                    present.links.contains(certificate)
                    ? .present(issuer.use)
                    : .taken(
                        issuer.use,
                        // A root has signed itself; what makes its key trusted is the link.
                        certificate.isRoot
                            ? .linked(from: issuer.certificate.issuerName)
                            : .signed(by: issuer.certificate.holderName)
                    )
                if !candidate.place.isEmpty { decisions.append(Decision(certificate, candidate.place, verdict)) }
                return true
            }
            trusted += added
            next = added
        }
        for candidate in waiting where !candidate.place.isEmpty {
            let names = trusted.contains { $0.certificate.holderReference == candidate.certificate.authorityReference }
            decisions.append(
                Decision(candidate.certificate, candidate.place, .left(Self.refusal(candidate.certificate, names)))
            )
        }
        self.decisions = decisions
    }

    private static func refusal(_ certificate: CVCertificate, _ isIssuerTrusted: Bool) -> Phrase {
        if isIssuerTrusted { return "it has a wrong signature of \(certificate.issuerName)" }
        if certificate.isRoot { return "it is a root with an unknown fingerprint" }
        return "it is signed by \(certificate.issuerName), which is not trusted"
    }

    /// The certificates that were taken.
    package var taken: [(certificate: CVCertificate, use: AuthorityUse)] {
        decisions.compactMap { decision in
            guard case .taken(let use, _) = decision.verdict else { return nil }
            return (decision.certificate, use)
        }
    }

    /// SHA-256 of a certificate in lower-case digits; empty, which is never known, if libcrypto fails.
    package static func fingerprint(of certificate: CVCertificate) -> String {
        (try? DigestAlgorithm.sha256.hash(certificate.encoded)).map { Hex.encode($0) } ?? ""
    }
}

extension AnchorSelection.Decision {
    fileprivate init(_ certificate: CVCertificate, _ place: String, _ verdict: AnchorSelection.Verdict) {
        self.certificate = certificate
        self.place = place
        self.verdict = verdict
    }
}

extension CVCertificate {
    fileprivate var isOfAuthority: Bool { chat.role == .cvca && chat.terminalType == .authenticationTerminal }
}
