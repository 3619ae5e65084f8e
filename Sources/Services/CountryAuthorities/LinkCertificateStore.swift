// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import EID
import Glibc
import Host
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

    /// Stores certificates that are missing or damaged. When the folder is full, expired and damaged ones are deleted.
    /// - Returns: false when a certificate could not be stored.
    package func save(_ certificates: [CVCertificate], today: CVDate) -> Bool {
        guard !certificates.isEmpty else { return true }
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { return false }
        guard let listed = CertificateFiles.names(in: folder) else { return false }
        var names = Set(listed)
        var isComplete = true
        for certificate in certificates {
            guard let name = Self.name(of: certificate) else { return false }
            let isKnown = names.contains(name)
            // The name is a hash, so that a file with other bytes is damaged.
            if isKnown, state(of: name) == .good(certificate) { continue }
            if !isKnown, names.count >= Self.maximumCount {
                for old in names where isUseless(old, today) && unlink("\(folder)/\(old)") == 0 { names.remove(old) }
            }
            guard isKnown || names.count < Self.maximumCount, write(certificate.encoded, name) else {
                isComplete = false
                continue
            }
            names.insert(name)
        }
        return isComplete
    }

    private enum State: Equatable {
        case good(CVCertificate)
        case damaged
        /// The file cannot be read now.
        case unknown
    }

    private func state(of name: String) -> State {
        switch PlainFile.readTrusted("\(folder)/\(name)", limit: CVCertificate.maximumLength) {
        case .bytes(let bytes): return (try? CVCertificate(bytes)).map(State.good) ?? .damaged
        case .missing, .tooLong: return .damaged
        case .failed: return PlainFile.mayPass() ? .unknown : .damaged
        }
    }

    private func isUseless(_ name: String, _ today: CVDate) -> Bool {
        switch state(of: name) {
        case .good(let certificate): certificate.expirationDate < today
        case .damaged: true
        case .unknown: false
        }
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
