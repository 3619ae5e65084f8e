// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import EID
package import Text

/// The country authorities that are trusted: every chain of certificates has to begin at one. TR-03110-3, 2.1.
///
/// Productive and test authorities are separate, since developer mode accepts test services only.
package struct TrustAnchors: Sendable, Equatable {
    /// The self-signed certificates of productive authorities.
    package private(set) var productive: [CVCertificate] = []
    package private(set) var test: [CVCertificate] = []
    /// Link certificates, with which an authority has signed its next key.
    package private(set) var links: [CVCertificate] = []
    /// One line for each file that is ignored.
    package private(set) var warnings: [Phrase] = []

    package init(productive: [CVCertificate] = [], test: [CVCertificate] = [], links: [CVCertificate] = []) {
        self.productive = productive
        self.test = test
        self.links = links
    }

    /// Reads the files `*.cvcert` of productive authorities in the folder, and those of test authorities in its subfolder
    /// `test`. Link certificates may be in both.
    package init(folder: String) {
        self.init(uncheckedFolder: folder)
        removeForgeries(in: folder)
    }

    /// Reads the folder, and leaves the signatures of roots to `removeForgeries`.
    init(uncheckedFolder folder: String) {
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
            do throws(Malformed) {
                let certificate = try CertificateFiles.read(path)
                guard certificate.chat.role == .cvca, certificate.chat.terminalType == .authenticationTerminal else {
                    warnings.append("\(path) is not a certificate of an authority for authentication terminals")
                    continue
                }
                if certificate.authorityReference != certificate.holderReference {
                    links.append(certificate)
                } else {
                    found.append(certificate)
                }
            } catch {
                warnings.append("\(path) cannot be used: \(error)")
            }
        }
        return found
    }

    /// Removes the roots whose own signature is wrong, with a warning for each.
    mutating func removeForgeries(in folder: String) {
        func isForged(_ root: CVCertificate) -> Bool { !root.isSigned(by: root, inheriting: nil) }
        for root in productive + test where isForged(root) {
            warnings.append("a certificate of \(root.holderName) in \(folder) has a wrong signature")
        }
        productive.removeAll(where: isForged)
        test.removeAll(where: isForged)
    }

    /// A chain that has passed all checks.
    package struct Verified {
        /// From the certificate that the anchor has signed to the terminal's.
        package let chain: [CVCertificate]
        package let isProductive: Bool
    }

    /// Why there is no such chain. The last case that applies is reported.
    package enum ChainFault: Error, Comparable {
        case noChain
        case signature
        case expired
    }

    /// Finds a chain from an anchor to the pool's terminal certificate in which all signatures are valid. If `day` is
    /// given, the last three certificates must be valid on that day: authority, document verifier and terminal.
    package func verify(_ pool: CVCertificatePool, on day: CVDate?) throws(ChainFault) -> Verified {
        var fault = ChainFault.noChain
        for (anchors, isProductive) in [(productive, true), (test, false)] {
            for anchor in anchors {
                for chain in pool.chains(from: { $0.authorityReference == anchor.holderReference }) {
                    guard Self.isSigned(chain, by: anchor) else {
                        fault = max(fault, .signature)
                        continue
                    }
                    if let day, !([anchor] + chain).suffix(3).allSatisfy({ $0.isValid(on: day) }) {
                        fault = max(fault, .expired)
                        continue
                    }
                    return Verified(chain: chain, isProductive: isProductive)
                }
            }
        }
        throw fault
    }

    /// Whether each certificate is signed by the one before it. A key without a curve inherits the curve of its issuer.
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
    /// Whether the issuer has signed this certificate; false when the issuer's key cannot be used.
    package func isSigned(by issuer: CVCertificate, inheriting curve: Curve?) -> Bool {
        guard let digest = issuer.digest, let key = try? issuer.publicKey.key(inheriting: curve) else { return false }
        return (try? isSigned(by: key, digest)) == true
    }

    fileprivate func isValid(on day: CVDate) -> Bool { effectiveDate <= day && day <= expirationDate }
}
