// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import CountryAuthorities
import Document
import Glibc
import Host
import MobileDocument
import Text

/// `badgectl mdoc anchors`: imports and lists the authorities of mobile documents.
enum MdocAnchorsCommand {
    /// The options of import and list.
    static let options = [
        OptionSpec(.folder, ValueSpec("PATH", .files), "anchors: use this folder, not that of badged"),
        OptionSpec(
            .root,
            ValueSpec("FILE", .files),
            "anchors import: take lists of authorities (VICAL) of this provider: its certificate, or its SHA-256"
        ),
        OptionSpec(.signer, ValueSpec("SHA256"), "anchors import: trust this certificate, do not ask"),
        OptionSpec(.docType, ValueSpec("TYPE"), "anchors import: trust certificates for this document type only"),
    ]
    static let details: Phrase = """
        anchors import FILE... takes certificates of authorities (IACA), revocation lists, status lists, lists of
        authorities (VICAL) with --root, and zip archives of these; anchors list shows what is trusted, and where each
        authority publishes its revocation list. badged comes without certificates. An authority of a list counts for
        the document types of the list only. It needs root. A running badged uses new files at once.
        """

    /// `words`: the action and its arguments.
    static func run(_ words: [String], _ invocation: Invocation) async throws {
        let folder = try await invocation.anchorFolder("mdocAnchors", \.mdocAnchors)
        let rest = Array(words.dropFirst())
        switch words.first {
        case "import" where !rest.isEmpty: try await importFiles(rest, folder, invocation)
        case "import": throw invocation.usage(tr("mdoc anchors import needs FILE"))
        case "list" where rest.isEmpty, nil: try await list(folder, invocation)
        case let word?: throw invocation.usage(tr("mdoc anchors has no action \(word)"))
        }
    }

    private static var now: Int { time(nil) }

    private static func anchors(_ folder: String) async -> DocumentAnchors {
        await MdocAnchorFolder(folder) { Output.ignored($0) }.authorities(at: now).anchors
    }

    // MARK: import

    private static func importFiles(_ paths: [String], _ folder: String, _ invocation: Invocation) async throws {
        let pinned = try invocation.fingerprint(of: .signer, hint: tr("the publisher of the certificate names it"))
        let docType = invocation.value(of: .docType)
        if let docType, !MdocAnchorFolder.isDocType(docType) {
            throw CommandFailure(
                usage: tr("--doc-type \(docType) is no document type"),
                hint: tr("such as org.iso.18013.5.1.mDL")
            )
        }
        var chosen = MdocAnchorImport(
            present: await anchors(folder),
            root: try root(invocation),
            docType: docType,
            at: now
        )
        for path in paths {
            let source = path == "-" ? "/dev/stdin" : path
            chosen.add(path, try FileContent.read(source, limit: DocumentAnchorFile.maximumLength))
        }
        chosen.documents.decide()
        if let pinned {
            chosen.documents.accept(fingerprint: pinned)
        } else if !chosen.documents.questions.isEmpty {
            let questions = chosen.documents.questions
            if try await DocumentAnchorsCommand.agrees(to: questions) { chosen.documents.accept(questions) }
        }
        chosen.documents.finish()
        for note in chosen.notes { Output.note(tr(note).printable) }
        for complaint in chosen.complaints { Output.note(tr("left \(complaint)").printable) }
        let files = chosen.files
        guard !files.isEmpty else {
            throw CommandFailure(
                tr(
                    "nothing was imported: \(chosen.complaints.first ?? Phrase("you trust none of it"))"
                ).printable,
                hint: tr("--signer SHA256 trusts a certificate without a question; badgectl mdoc --help")
            )
        }
        try DocumentAnchorsCommand.write(files, folder, "mdoc anchors import")
        guard !invocation.wantsJSON else { return print(await anchors(folder)) }
        let unreadable = chosen.malformed > 0 ? tr(", \(chosen.malformed) entries cannot be read") : ""
        let taken = "\(files.count) \(files.count == 1 ? tr("file") : tr("files"))"
        Output.line(tr("\(taken) taken") + "\(unreadable). " + tr("badged uses what is in \(folder)."))
    }

    private static func root(_ invocation: Invocation) throws -> MdocAnchorImport.Root? {
        guard let value = invocation.value(of: .root) else { return nil }
        if let bytes = Hex.decode(value.filter { $0 != ":" }), bytes.count == 32 { return .fingerprint(bytes) }
        let content = try FileContent.read(value, limit: DocumentCertificate.maximumLength * 2)
        guard case .certificate(let certificate)? = try? DocumentAnchorFile(content) else {
            throw CommandFailure(
                tr("\(value) is no certificate"),
                hint: tr("--root names one in DER or PEM, or its SHA-256")
            )
        }
        return .certificate(certificate)
    }

    // MARK: list

    private static func list(_ folder: String, _ invocation: Invocation) async throws {
        let anchors = await anchors(folder)
        guard anchors.count > 0 else {
            throw CommandFailure(
                tr("\(folder) has no authority of mobile documents"),
                hint: tr("import a certificate: sudo badgectl mdoc anchors import FILE")
            )
        }
        guard !invocation.wantsJSON else { return print(anchors) }
        for certificate in sorted(anchors) {
            let types = anchors.docTypes(of: certificate)?.sorted().joined(separator: " ") ?? tr("all documents")
            let until = DocumentTime.text(certificate.validity.upperBound)
            let lists = certificate.listAddresses.map { "  \($0)" }.joined()
            Output.line((tr("\(certificate.subject.text)  valid until \(until)  \(types)") + lists).printable)
        }
    }

    private static func sorted(_ anchors: DocumentAnchors) -> [DocumentCertificate] {
        anchors.all.sorted { ($0.subject.text, $0.validity.lowerBound) < ($1.subject.text, $1.validity.lowerBound) }
    }

    /// One object for each authority.
    private static func print(_ anchors: DocumentAnchors) {
        for certificate in sorted(anchors) {
            Output.object { object in
                object.member("country", certificate.subject.country)
                object.member("name", certificate.subject.text)
                object.member("from", DocumentTime.text(certificate.validity.lowerBound))
                object.member("until", DocumentTime.text(certificate.validity.upperBound))
                if let types = anchors.docTypes(of: certificate) { object.member("docTypes", types.sorted()) }
                if !certificate.listAddresses.isEmpty { object.member("revocationLists", certificate.listAddresses) }
                object.member("sha256", Hex.encode(certificate.fingerprint))
            }
        }
    }
}
