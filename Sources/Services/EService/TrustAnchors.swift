// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import EID

/// The country authorities that are believed: where every chain of certificates has to begin. TR-03110-3, 2.1.
///
/// Productive and test authorities are told apart: developer mode takes test services only.
package struct TrustAnchors: Sendable, Equatable {
    /// Self-signed certificates of authorities.
    package private(set) var productive: [CVCertificate] = []
    package private(set) var test: [CVCertificate] = []
    /// Certificates by which an authority has signed its next key.
    package private(set) var links: [CVCertificate] = []
    /// Files that were passed over, one line each.
    package private(set) var warnings: [String] = []

    package init(productive: [CVCertificate] = [], test: [CVCertificate] = [], links: [CVCertificate] = []) {
        (self.productive, self.test, self.links) = (productive, test, links)
    }

    /// Reads the files `*.cvcert` in the folder, and those of test authorities in its folder `test`; link certificates may
    /// be in either.
    package init(folder: String) {
        productive = roots(in: folder)
        if let names = CertificateFiles.names(in: folder + "/test"), !names.isEmpty {
            test = roots(in: folder + "/test")
        }
    }

    private mutating func roots(in folder: String) -> [CVCertificate] {
        guard let names = CertificateFiles.names(in: folder) else {
            warnings.append("\(folder) cannot be read")
            return []
        }
        var found: [CVCertificate] = []
        for name in names {
            let path = "\(folder)/\(name)"
            do throws(CVCertificateError) {
                let certificate = try CertificateFiles.read(path)
                guard certificate.chat.role == .cvca, certificate.chat.terminalType == .authenticationTerminal else {
                    warnings.append("\(path) is no certificate of an authority for authentication terminals")
                    continue
                }
                if certificate.authorityReference != certificate.holderReference {
                    links.append(certificate)
                } else if certificate.isSigned(by: certificate, inheriting: nil) {
                    found.append(certificate)
                } else {
                    warnings.append("\(path) has a wrong signature")
                }
            } catch {
                warnings.append("\(path) cannot be used: \(error)")
            }
        }
        return found
    }

    /// A chain that has been checked.
    struct Verified {
        /// From the certificate that the anchor signed to the terminal's.
        let chain: [CVCertificate]
        let isProductive: Bool
    }

    /// Why there is none, the worse the later.
    enum Refusal: Error, Comparable {
        case noChain
        case signature
        case expired
    }

    /// Looks for a chain from an anchor to the pool's terminal certificate that is signed all the way and, where
    /// `day` is given, valid on that day: the terminal's, its issuer's, and the authority's that signed this one.
    func verify(_ pool: CVCertificatePool, on day: CVDate?) throws(Refusal) -> Verified {
        var refusal = Refusal.noChain
        for (anchors, isProductive) in [(productive, true), (test, false)] {
            for anchor in anchors {
                for chain in pool.chains(from: { $0.authorityReference == anchor.holderReference }) {
                    guard Self.isSigned(chain, by: anchor) else {
                        refusal = max(refusal, .signature)
                        continue
                    }
                    if let day, !([anchor] + chain).suffix(3).allSatisfy({ $0.isValid(on: day) }) {
                        refusal = max(refusal, .expired)
                        continue
                    }
                    return Verified(chain: chain, isProductive: isProductive)
                }
            }
        }
        throw refusal
    }

    /// Each by the one before it. A curve is inherited where a key does not write it out.
    private static func isSigned(_ chain: [CVCertificate], by anchor: CVCertificate) -> Bool {
        var issuer = anchor
        var curve = anchor.publicKey.curve
        for certificate in chain {
            guard certificate.isSigned(by: issuer, inheriting: curve) else { return false }
            curve = certificate.publicKey.curve ?? curve
            issuer = certificate
        }
        return true
    }
}

extension CVCertificate {
    /// False also when the issuer's key cannot be used.
    fileprivate func isSigned(by issuer: CVCertificate, inheriting curve: Curve?) -> Bool {
        guard let digest = issuer.digest, let key = try? issuer.publicKey.key(inheriting: curve) else { return false }
        return (try? isSigned(by: key, digest)) == true
    }

    fileprivate func isValid(on day: CVDate) -> Bool { effectiveDate <= day && day <= expirationDate }
}
