// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import EID
import Glibc
import Text

/// Stores link certificates of verified chains, for later services that do not send them.
///
/// Only verified certificates are stored, so a service cannot fill the folder. They are verified again with each chain
/// that uses them.
package struct LinkCertificateStore: Sendable, Equatable {
    package static let maximumCount = 64

    private let folder: String

    /// - Parameter folder: created at the first `save`; its parent must exist.
    package init(folder: String) { self.folder = folder }

    /// Reads the stored certificates; damaged files are ignored.
    package func load() -> [CVCertificate] {
        (CertificateFiles.names(in: folder) ?? []).prefix(Self.maximumCount)
            .compactMap { try? CertificateFiles.read("\(folder)/\($0)") }
            .filter { $0.chat.role == .cvca && $0.authorityReference != $0.holderReference }
    }

    /// Stores certificates that are missing. When the folder is full, expired ones are deleted.
    /// - Returns: false when a certificate could not be stored.
    package func save(_ certificates: [CVCertificate], today: CVDate) -> Bool {
        guard !certificates.isEmpty else { return true }
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { return false }
        var names = Set(CertificateFiles.names(in: folder) ?? [])
        var isComplete = true
        for certificate in certificates {
            guard let name = Self.name(of: certificate) else { return false }
            if names.contains(name) { continue }
            if names.count >= Self.maximumCount {
                for old in names where isExpired(old, today) && unlink("\(folder)/\(old)") == 0 { names.remove(old) }
            }
            guard names.count < Self.maximumCount, write(certificate.encoded, name) else {
                isComplete = false
                continue
            }
            names.insert(name)
        }
        return isComplete
    }

    private func isExpired(_ name: String, _ today: CVDate) -> Bool {
        guard let certificate = try? CertificateFiles.read("\(folder)/\(name)") else { return true }
        return certificate.expirationDate < today
    }

    /// The file name: a hash of the certificate.
    private static func name(of certificate: CVCertificate) -> String? {
        guard let hash = try? DigestAlgorithm.sha256.hash(certificate.encoded) else { return nil }
        return Hex.encode(hash.prefix(16)) + CertificateFiles.suffix
    }

    private func write(_ bytes: [UInt8], _ name: String) -> Bool {
        guard let draft = try? CertificateFiles.writeTemporary(bytes, in: folder, mode: 0o600) else { return false }
        if rename(draft, "\(folder)/\(name)") == 0 { return true }
        unlink(draft)
        return false
    }
}
