// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Document
import MobileDocument
package import Text

/// Decides which files go into the folder of the authorities of mobile documents: certificates and revocation lists as
/// for other documents, the authorities of lists (VICAL) whose provider the administrator has named, and status lists.
package struct MdocAnchorImport: Sendable {
    /// Who may sign lists of authorities.
    package enum Root: Sendable {
        case certificate(DocumentCertificate)
        /// The SHA-256 of a certificate that lists carry.
        case fingerprint([UInt8])
    }

    /// The certificates and revocation lists, with their questions.
    package var documents: DocumentAnchorImport
    /// The files of lists, by name.
    private var ownFiles: [String: [UInt8]] = [:]
    private var ownComplaints: [Phrase] = []
    /// How many entries cannot be read.
    package private(set) var malformed = 0
    private let root: Root?
    private let docType: String?
    private let present: DocumentAnchors
    /// The certificates that the administrator has named, and not only lists that have them.
    private var named: Set<DocumentCertificate> = []
    private let time: Int

    /// The longest file in an archive.
    private static let maximumEntry = 16 << 20

    /// - Parameters:
    ///   - present: the authorities of the folder.
    ///   - root: who may sign lists of authorities; nil: nobody.
    ///   - docType: the document type for which single certificates are trusted; nil for all.
    ///   - time: seconds since 1970.
    package init(present: DocumentAnchors, root: Root?, docType: String?, at time: Int) {
        documents = DocumentAnchorImport(present: present, at: time)
        self.root = root
        self.docType = docType
        self.present = present
        self.time = time
    }

    /// What was left, and why.
    package var complaints: [Phrase] { ownComplaints + documents.complaints }

    /// What the user is to know of what was taken.
    package var notes: [Phrase] {
        documents.notes
            + authorities.compactMap { _, certificate -> Phrase? in
                guard let types = types(of: certificate), types != docType.map({ Set([$0]) }) else { return nil }
                let words = types.sorted().joined(separator: ", ")
                return Phrase(
                    "\(certificate.subject.text) counts for \(words) only, as the authority that vouches for it: for other documents, copy its file into their folder"
                )
            }
    }

    /// The files to write, by name. Certificates of authorities that count for one document type are in its folder.
    package var files: [String: [UInt8]] {
        var files = documents.files
        for (name, certificate) in authorities {
            files[name] = nil
            for type in types(of: certificate)?.sorted().map(Optional.some) ?? [docType] {
                files[place(type, name)] = certificate.bytes
            }
        }
        return files.merging(ownFiles) { $1 }
    }

    /// The types of documents for which an authority counts, because another one vouches for it; nil: those of the
    /// import, as for each one that the administrator has chosen.
    private func types(of certificate: DocumentCertificate) -> Set<String>? {
        named.contains(certificate) && present.role(of: certificate) == .authority
            ? nil : documents.anchors.docTypes(of: certificate)
    }

    /// The certificates of authorities among the files, by name.
    private var authorities: [(name: String, certificate: DocumentCertificate)] {
        documents.files.compactMap { name, content in
            guard let certificate = try? DocumentCertificate(content),
                documents.anchors.role(of: certificate) == .authority
            else { return nil }
            return (name, certificate)
        }
    }

    private func place(_ docType: String?, _ name: String) -> String { docType.map { "\($0)/\(name)" } ?? name }

    /// Adds a file that the administrator has named, or a zip archive of such files.
    package mutating func add(_ place: String, _ content: [UInt8]) {
        guard ZipArchive.looksLike(content) else { return addFile(place, content) }
        do throws(Malformed) {
            let archive = try ZipArchive(content)
            for entry in archive.entries where !entry.isFolder {
                let inside = "\(place)/\(entry.name)"
                do throws(Malformed) {
                    addFile(inside, try archive.content(of: entry, limit: Self.maximumEntry))
                } catch {
                    complain(inside, Phrase(stringLiteral: error.text))
                }
            }
        } catch {
            complain(place, Phrase(stringLiteral: error.text))
        }
    }

    private mutating func addFile(_ place: String, _ content: [UInt8]) {
        // DER and text begin otherwise.
        guard MdocStatusList.looksLike(content) else {
            if let file = try? DocumentAnchorFile(content) {
                for entry in DocumentAnchors.Entry.all(of: place, file, []) where entry.isChosen {
                    if case .certificate(let certificate) = entry.file { named.insert(certificate) }
                }
            }
            return documents.add(place, content)
        }
        do throws(MdocProblem) {
            if let list = try? MdocStatusList(content) {
                guard list.isCurrent(at: time) else {
                    return complain(place, "the status list is over, or not valid yet")
                }
                keep(content, country: nil, "cwt")
            } else {
                take(try MdocAuthorityList(content), place)
            }
        } catch {
            complain(place, Phrase(stringLiteral: error.text))
        }
    }

    /// Takes the authorities of a list, each for its document types only.
    private mutating func take(_ list: MdocAuthorityList, _ place: String) {
        let root: DocumentCertificate?
        switch self.root {
        case .certificate(let certificate): root = certificate
        case .fingerprint(let fingerprint): root = list.certificates.first { $0.fingerprint == fingerprint }
        case nil:
            return complain(
                place,
                "a list of \(list.provider) counts only with --root, the certificate of its provider"
            )
        }
        guard let root else { return complain(place, "the list has no certificate with the SHA-256 of --root") }
        do throws(Malformed) {
            try list.judge(by: root, at: time)
        } catch {
            return complain(place, Phrase(stringLiteral: error.text))
        }
        malformed += list.malformed
        for entry in list.entries {
            let certificate = entry.certificate
            guard certificate.signsCertificates, certificate.isSelfSigned else {
                complain(place, "\(certificate.subject.text) is no authority")
                continue
            }
            for docType in entry.docTypes.sorted() {
                guard MdocAnchorFolder.isDocType(docType) else {
                    complain(place, "\(certificate.subject.text) has a document type that is no word with a dot")
                    continue
                }
                keep(certificate.bytes, country: certificate.subject.country, "cer", in: docType)
            }
        }
    }

    private mutating func complain(_ place: String, _ reason: Phrase) { ownComplaints.append("\(place): \(reason)") }

    private mutating func keep(_ content: [UInt8], country: String?, _ suffix: String, in docType: String? = nil) {
        ownFiles[place(docType, DocumentAnchorImport.name(of: content, country, suffix))] = content
    }
}
