// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Document
package import Text

/// Decides which certificates and lists of documents go into the folder of the authorities: what an authority that is
/// trusted has signed, and what the administrator agrees to. ICAO 9303-12 8, 9.
package struct DocumentAnchorImport: Sendable {
    /// Something that nobody who is trusted has signed, and that would bring authorities.
    package struct Question: Sendable, Equatable {
        /// The file in which it was found.
        package let place: String
        /// The name of the authority or of the list's signer, or what a file with many certificates is.
        package let name: String
        /// SHA-256 of the certificate, or of the file with many, to compare with what the publisher says.
        package let fingerprint: [UInt8]
        /// Two letters each, sorted.
        package let countries: [String]
        /// How many authorities it would bring.
        package let authorities: Int
        /// The first day of the newest authority, `yyyy-MM-dd`.
        package let newest: String
        /// What is known against the signer of a list; nil: nothing.
        package let doubt: String?
        fileprivate let files: [DocumentAnchorFile]
    }

    /// The authorities that are trusted after the import.
    package private(set) var anchors: DocumentAnchors
    /// The files to write, by name. Those of the folder that came again are among them.
    package private(set) var files: [String: [UInt8]] = [:]
    /// What nobody who is trusted has signed. `accept` decides about it.
    package private(set) var questions: [Question] = []
    /// What was left, and why.
    package private(set) var complaints: [Phrase] = []
    /// What is to be known about files that were taken.
    package private(set) var notes: [Phrase] = []
    /// Entries and certificates that cannot be read. Official lists have some.
    package private(set) var malformed = 0
    private var waiting: [DocumentAnchors.Entry] = []
    /// SHA-256 of the files with many certificates, by their place.
    private var collections: [String: [UInt8]] = [:]
    private let time: Int

    /// - Parameters:
    ///   - present: the authorities of the folder.
    ///   - time: seconds since 1970.
    package init(present: DocumentAnchors, at time: Int) {
        anchors = present
        self.time = time
    }

    /// Adds a file that the administrator has named.
    package mutating func add(_ place: String, _ content: [UInt8]) {
        do throws(Malformed) {
            let file = try DocumentAnchorFile(content)
            if case .collection(let collection) = file {
                malformed += collection.malformed
                if let fault = collection.firstFault {
                    complain(place, "\(collection.malformed) cannot be read; the first one: \(fault)")
                }
                if collection.isChosen { collections[place] = try? DigestAlgorithm.sha256.hash(content) }
            }
            waiting += DocumentAnchors.Entry.all(of: place, file, content)
        } catch {
            complain(place, Phrase(stringLiteral: error.text))
        }
    }

    private mutating func complain(_ place: String, _ reason: Phrase) { complaints.append("\(place): \(reason)") }

    /// Takes what trusted authorities have signed, in any order, and makes the questions about the rest.
    package mutating func decide() {
        var taken: [DocumentAnchors.Entry] = []
        anchors.take(&waiting, at: time, checksSigners: true) { taken.append($0) }
        for entry in taken { keep(entry) }
        questions = makeQuestions()
    }

    /// Trusts what the questions are about, and takes what it has signed.
    package mutating func accept(_ chosen: [Question]) {
        for file in chosen.flatMap(\.files) { accept(file) }
        decide()
    }

    /// Trusts what has this SHA-256: a signer, an authority, or a file with many.
    package mutating func accept(fingerprint: [UInt8]) {
        for question in questions {
            if question.fingerprint == fingerprint {
                for file in question.files { accept(file) }
            } else {
                for case .certificate(let certificate) in question.files where certificate.fingerprint == fingerprint {
                    accept(.certificate(certificate))
                }
            }
        }
        decide()
    }

    private mutating func accept(_ file: DocumentAnchorFile) {
        do throws(Malformed) {
            switch file {
            case .certificate(let certificate): try anchors.trust(certificate)
            case .masterList(let list):
                let known = Set(anchors.all.filter(anchors.isChosen))
                _ = try anchors.add(list, at: time, fingerprint: list.proof.signer.fingerprint)
                // The authority of the signer is chosen by this, also if the list does not have it.
                for authority in anchors.all where anchors.isChosen(authority) && !known.contains(authority) {
                    keep(authority)
                }
                keep(list)
                waiting.removeAll { $0.file == file }
            case .revocationList, .defectList, .collection: return
            }
        } catch {
            if let place = waiting.first(where: { $0.file == file })?.place {
                complain(place, Phrase(stringLiteral: error.text))
            }
            waiting.removeAll { $0.file == file }
        }
    }

    /// Leaves out the certificates of signers, for which there is no room. Few documents need them.
    package mutating func leaveOutSigners() {
        let names = files.keys.filter { $0.hasSuffix(Self.signerSuffix) }
        guard !names.isEmpty else { return }
        for name in names { files[name] = nil }
        complaints.append(
            "\(names.count) certificates of signers: a folder may have at most \(AnchorFiles.maximumCount) files"
        )
    }

    /// Explains what is left at the end.
    package mutating func finish() {
        for entry in waiting {
            let reason = Phrase(stringLiteral: entry.fault?.text ?? DocumentAnchors.notTrusted.text)
            switch entry.file {
            case .certificate(let certificate) where certificate.signsCertificates:
                complain(entry.place, "\(certificate.subject.text) is not trusted")
            case .certificate(let certificate) where certificate.isAuthority || certificate.isSelfIssued:
                complain(entry.place, "\(certificate.subject.text): \(reason)")
            case .certificate(let certificate):
                complain(entry.place, "\(certificate.subject.text) is of no trusted authority")
            case .masterList(let list):
                complain(entry.place, "the signer \(list.proof.signer.subject.text) is not trusted: \(reason)")
            case .revocationList(let list):
                complain(entry.place, "the list of \(list.issuer.text): \(reason)")
            case .defectList, .collection: complain(entry.place, reason)
            }
        }
        waiting = []
        questions = []
    }

    // MARK: Files

    /// Keeps what was taken.
    private mutating func keep(_ entry: DocumentAnchors.Entry) {
        switch entry.file {
        case .certificate(let certificate): keep(certificate)
        case .masterList(let list): keep(list)
        case .revocationList(let list):
            keep(list.bytes, list.issuer.country, "crl")
            guard anchors.isUnusable(list) else { return }
            let reason = list.fault?.words ?? Phrase("badged does not know the algorithm of its signature")
            notes.append("\(entry.place): \(DocumentAnchors.unusable.words): \(reason)")
        case .defectList: keep(entry.content, nil, "defects")
        case .collection: break
        }
    }

    private static let signerSuffix = "signer.cer"

    private mutating func keep(_ certificate: DocumentCertificate) {
        let suffix: String
        switch anchors.role(of: certificate) {
        case .authority: suffix = anchors.isChosen(certificate) ? "cer" : DocumentAnchors.listedSuffix
        case .link: suffix = "link.cer"
        // Signers are only needed for documents without certificates.
        case nil: suffix = Self.signerSuffix
        }
        keep(certificate.bytes, certificate.subject.country, suffix)
    }

    /// Keeps the certificates of a list that was added.
    private mutating func keep(_ list: MasterList) {
        malformed += list.malformed
        for certificate in list.certificates {
            if anchors.role(of: certificate) == nil { malformed += 1 } else { keep(certificate) }
        }
    }

    /// Files of a country begin with its letters, so that they can be found and removed.
    private mutating func keep(_ content: [UInt8], _ country: String?, _ suffix: String) {
        files[Self.name(of: content, country, suffix)] = content
    }

    /// The name of a file: the letters of the country, or XX, and the beginning of its SHA-256.
    static func name(of content: [UInt8], _ country: String?, _ suffix: String) -> String {
        let letters = country.map { $0.utf8.count == 2 && $0.utf8.allSatisfy { (0x41...0x5A).contains($0) } } == true
        let digits = Hex.encode((try? DigestAlgorithm.sha256.hash(content)) ?? []).prefix(16)
        return "\(letters ? country ?? "" : "XX")-\(digits).\(suffix)"
    }

    private func makeQuestions() -> [Question] {
        var questions: [Question] = []
        var bundles: [String: [DocumentCertificate]] = [:]
        for entry in waiting {
            switch entry.file {
            case .certificate(let own) where own.signsCertificates && own.isSelfIssued && !own.namesAnotherKey:
                if entry.isChosen, collections[entry.place] != nil {
                    bundles[entry.place, default: []].append(own)
                } else {
                    questions.append(question(entry.place, own.subject.text, own.fingerprint, [own], entry.file))
                }
            case .masterList(let list):
                guard anchors.objection(to: list.proof, at: time) == nil else { continue }
                let doubt = anchors.doubt(about: list.proof, at: time)?.text
                let signer = list.proof.signer
                let own = list.certificates.filter { $0.signsCertificates && $0.isSelfIssued && !$0.namesAnotherKey }
                questions.append(
                    question(entry.place, signer.subject.text, signer.fingerprint, own, entry.file, doubt: doubt)
                )
            case .certificate, .revocationList, .defectList, .collection: continue
            }
        }
        for (place, certificates) in bundles.sorted(by: { $0.key < $1.key }) {
            let fingerprint = collections[place] ?? []
            let name = certificates.count == 1 ? "1 certificate" : "\(certificates.count) certificates"
            questions.append(question(place, name, fingerprint, certificates))
        }
        return questions
    }

    private func question(
        _ place: String,
        _ name: String,
        _ fingerprint: [UInt8],
        _ brought: [DocumentCertificate],
        _ file: DocumentAnchorFile? = nil,
        doubt: String? = nil
    ) -> Question {
        Question(
            place: place,
            name: name,
            fingerprint: fingerprint,
            countries: Set(brought.compactMap(\.subject.country)).sorted(),
            authorities: brought.count,
            newest: brought.map(\.validity.lowerBound).max().map(DocumentTime.text) ?? "",
            doubt: doubt,
            files: file.map { [$0] } ?? brought.map { .certificate($0) }
        )
    }
}
