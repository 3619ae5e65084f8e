// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Document
import Text

/// Decides which certificates and lists of documents go into the folder of the authorities: what an authority that is
/// trusted has signed, and what the administrator agrees to. ICAO 9303-12 8, 9.
package struct DocumentAnchorImport: Sendable {
    /// Something that nobody who is trusted has signed, and that would bring authorities.
    package struct Question: Sendable, Equatable {
        /// The file in which it was found.
        package let place: String
        /// The name of the authority or of the list's signer.
        package let name: String
        /// SHA-256 of the certificate, to compare with what the publisher says.
        package let fingerprint: [UInt8]
        /// Two letters each, sorted.
        package let countries: [String]
        /// How many authorities it would bring.
        package let authorities: Int
        /// The first day of the newest authority, `yyyy-MM-dd`.
        package let newest: String
        fileprivate let file: DocumentAnchorFile
    }

    /// The authorities that are trusted after the import.
    package private(set) var anchors: DocumentAnchors
    /// The files to write, by name. Those of the folder that came again are among them.
    package private(set) var files: [String: [UInt8]] = [:]
    /// What nobody who is trusted has signed. `accept` decides about it.
    package private(set) var questions: [Question] = []
    /// What was left, and why.
    package private(set) var complaints: [String] = []
    /// Entries and certificates that cannot be read. Official lists have some.
    package private(set) var malformed = 0
    private var waiting: [(place: String, file: DocumentAnchorFile, content: [UInt8])] = []
    private let time: Int

    /// - Parameters:
    ///   - present: the authorities of the folder.
    ///   - time: seconds since 1970.
    package init(present: DocumentAnchors, at time: Int) {
        (anchors, self.time) = (present, time)
    }

    /// Adds a file that the administrator has named.
    package mutating func add(_ place: String, _ content: [UInt8]) {
        do throws(Malformed) {
            switch try DocumentAnchorFile(content) {
            case .directory(let entries, let malformed):
                waiting += entries.map { (place, $0, []) }
                self.malformed += malformed
            case let file: waiting.append((place, file, content))
            }
        } catch {
            complain(place, error.text)
        }
    }

    private mutating func complain(_ place: String, _ reason: String) { complaints.append("\(place): \(reason)") }

    /// Takes what trusted authorities have signed, in any order, and makes the questions about the rest.
    package mutating func decide() {
        var count = -1
        // Each round may bring the authority of another list.
        while count != waiting.count {
            count = waiting.count
            for entry in waiting.splitting() where !add(entry.file, entry.content) { waiting.append(entry) }
        }
        questions = waiting.compactMap { question($0.place, $0.file) }
    }

    /// Trusts what the questions are about, and takes what it has signed.
    package mutating func accept(_ chosen: [Question]) {
        for question in chosen {
            switch question.file {
            case .certificate(let certificate): _ = try? anchors.trust(certificate)
            case .masterList(let list):
                _ = try? anchors.add(list, at: time, fingerprint: list.proof.signer.fingerprint)
                keep(list)
                waiting.removeAll { $0.file == question.file }
            case .revocationList, .defectList, .directory: continue
            }
        }
        decide()
    }

    /// Explains what is left at the end.
    package mutating func finish() {
        for (place, file, _) in waiting.splitting() {
            switch file {
            case .certificate(let certificate) where certificate.signsCertificates:
                complain(place, "\(certificate.subject.text) is not trusted")
            case .certificate(let certificate):
                complain(place, "\(certificate.subject.text) is of no trusted authority")
            case .masterList(let list): complain(place, "the signer \(list.proof.signer.subject.text) is not trusted")
            case .revocationList(let list):
                complain(place, "no trusted authority has signed the list of \(list.issuer.text)")
            case .defectList, .directory: complain(place, "no trusted authority has signed it")
            }
        }
        questions = []
    }

    // MARK: Files

    /// Takes a file that is trusted; false for another one.
    private mutating func add(_ file: DocumentAnchorFile, _ content: [UInt8]) -> Bool {
        do throws(Malformed) {
            switch file {
            case .certificate(let certificate): return try add(certificate)
            case .masterList(let list):
                _ = try anchors.add(list, at: time)
                keep(list)
            case .revocationList(let list):
                try anchors.add(list)
                keep(list.bytes, list.issuer.country, "crl")
            case .defectList(let list):
                try anchors.addDefects(list, at: time)
                keep(content, nil, "defects")
            case .directory: return false
            }
            return true
        } catch {
            return false
        }
    }

    private mutating func add(_ certificate: DocumentCertificate) throws(Malformed) -> Bool {
        if anchors.role(of: certificate) == .authority {
            keep(certificate.bytes, certificate.subject.country, "cer")
            return true
        }
        guard anchors.issuer(of: certificate) != nil else { return false }
        if certificate.signsCertificates {
            guard !certificate.isSelfIssued else { return false }
            try anchors.addLink(certificate)
            keep(certificate.bytes, certificate.subject.country, "link.cer")
            return true
        }
        // Signers are only needed for documents without certificates.
        anchors.addSigner(certificate)
        keep(certificate.bytes, certificate.subject.country, "signer.cer")
        return true
    }

    /// Keeps the certificates of a list that was added.
    private mutating func keep(_ list: MasterList) {
        malformed += list.malformed
        for certificate in list.certificates {
            switch anchors.role(of: certificate) {
            case .authority: keep(certificate.bytes, certificate.subject.country, "cer")
            case .link: keep(certificate.bytes, certificate.subject.country, "link.cer")
            case nil: malformed += 1
            }
        }
    }

    /// Files of a country begin with its letters, so that they can be found and removed.
    private mutating func keep(_ content: [UInt8], _ country: String?, _ suffix: String) {
        let letters = country.map { $0.utf8.count == 2 && $0.utf8.allSatisfy { (0x41...0x5A).contains($0) } } == true
        let digits = Hex.encode((try? DigestAlgorithm.sha256.hash(content)) ?? []).prefix(16)
        files["\(letters ? country ?? "" : "XX")-\(digits).\(suffix)"] = content
    }

    private func question(_ place: String, _ file: DocumentAnchorFile) -> Question? {
        let signer: DocumentCertificate
        let brought: [DocumentCertificate]
        switch file {
        case .certificate(let certificate) where certificate.signsCertificates && certificate.isSelfIssued:
            (signer, brought) = (certificate, [certificate])
        case .masterList(let list):
            (signer, brought) = (
                list.proof.signer, list.certificates.filter { $0.signsCertificates && $0.isSelfIssued }
            )
        case .certificate, .revocationList, .defectList, .directory: return nil
        }
        return Question(
            place: place,
            name: signer.subject.text,
            fingerprint: signer.fingerprint,
            countries: Set(brought.compactMap(\.subject.country)).sorted(),
            authorities: brought.count,
            newest: brought.map(\.validity.lowerBound).max().map(DocumentTime.text) ?? "",
            file: file
        )
    }
}

extension Array {
    /// Takes all elements out.
    fileprivate mutating func splitting() -> [Element] {
        defer { self = [] }
        return self
    }
}
