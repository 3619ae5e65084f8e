// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Synchronization

/// The TLS certificates of the server: correct ones, and one for each fault.
enum CertificateName: String, Sendable, CaseIterable {
    case web
    case webEC = "web-ec"
    case psk
    /// Not in the certificate description.
    case unlisted
    case expired
    case future
    /// For another host.
    case wrongHost = "wronghost"
    /// An RSA key of 1024 bits.
    case weak

    var isListed: Bool { self != .unlisted }
}

/// The TLS certificates, issued at each start. No client needs to trust their authority, since eID clients check the
/// hashes in the certificate description. TR-03124-1 2.7.3.
final class TLSCertificates: Sendable {
    let authority: TLSCertificate
    private let certificates: [CertificateName: TLSCertificate]

    /// Made once for each process, since a key of 3072 bits takes long.
    private static let keys = Mutex<(strong: TLSKey?, weak: TLSKey?)>((nil, nil))

    init() throws(TLSError) {
        let (strong, weak) = try Self.keys.withLock { keys throws(TLSError) in
            let strong = if let key = keys.strong { key } else { try TLSKey(.rsa(bits: 3072)) }
            let weak = if let key = keys.weak { key } else { try TLSKey(.rsa(bits: 1024)) }
            keys = (strong, weak)
            return (strong, weak)
        }
        let curve = try TLSKey(.p256)
        var authoritySubject = TLSCertificate.Subject()
        // Clients find an authority by its name, so each has another one.
        let name = "badged-eidserver TLS authority \(UInt32.random(in: .min ... .max))"
        (authoritySubject.hosts, authoritySubject.isAuthority) = ([name], true)
        let authority = try TLSCertificate(authoritySubject, curve)
        var certificates: [CertificateName: TLSCertificate] = [:]
        for name in CertificateName.allCases {
            var subject = TLSCertificate.Subject(hosts: ["localhost", "127.0.0.1"])
            var key = strong
            switch name {
            case .web, .psk, .unlisted: break
            case .webEC: key = curve
            case .expired: subject.validity = -60 ... -30
            case .future: subject.validity = 30...60
            case .wrongHost: subject.hosts = ["other.invalid"]
            case .weak: key = weak
            }
            certificates[name] = try TLSCertificate(subject, key, issuer: authority)
        }
        (self.authority, self.certificates) = (authority, certificates)
    }

    subscript(_ name: CertificateName) -> TLSCertificate { certificates[name] ?? authority }

    /// The hashes for a certificate description. TR-03110-4 A.2.1.
    func listedHashes(_ digest: DigestAlgorithm) throws(CryptoError) -> [[UInt8]] {
        var hashes: [[UInt8]] = []
        for name in CertificateName.allCases where name.isListed { hashes.append(try digest.hash(self[name].der)) }
        return hashes
    }
}
