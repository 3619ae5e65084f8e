// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import CountryAuthorities
import Document
import Glibc
import Host
import Text

/// `badgectl documents anchors`: imports, lists and removes the authorities of electronic documents.
enum DocumentAnchorsCommand {
    static let spec = ShellCommand(
        name: "documents",
        summary: "import or list the authorities of passports and other electronic documents",
        operand: ValueSpec("anchors", .words(["anchors"])),
        others: ValueSpec("ARGUMENT", .files),
        options: [
            OptionSpec(.folder, ValueSpec("PATH", .files), "use this folder, not that of badged"),
            OptionSpec(.signer, ValueSpec("SHA256"), "import: trust the certificate with this SHA-256, do not ask"),
        ],
        details: [
            """
            anchors import FILE... takes certificates, revocation lists, master lists and defect lists. anchors list shows
            what is trusted, by country. anchors remove COUNTRY removes what a country has, by its two letters.
            """,
            """
            badged comes without certificates. Master lists of many countries are published by the ICAO (icaopkdpublic)
            and by the German Federal Office for Information Security (BSI). FILE is a master list (.ml), an export of
            a directory (.ldif), a certificate (.cer) or a revocation list (.crl), in DER, base64 or PEM, a PEM file or
            .p7b with many of them; - for standard input. Unpack a zip archive first.
            """,
            """
            import takes what an authority that is trusted has signed; a master list only if its signer's authority was
            chosen, and not brought by another list. About anything else it shows the countries, the number, the
            newest certificate and the SHA-256 of the signer, or of a file with many certificates, and asks once.
            Compare the SHA-256 with another source. It needs root. A running badged uses new files at once.
            """,
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let folder = try await invocation.anchorFolder("documentAnchors", \.documentAnchors)
        let rest = Array(invocation.others.dropFirst())
        switch invocation.others.first {
        case "import" where !rest.isEmpty: try await importFiles(rest, folder, invocation)
        case "import": throw invocation.usage(tr("documents anchors import needs FILE"))
        case "list" where rest.isEmpty, nil: try await list(folder, invocation)
        case "remove" where rest.count == 1: try remove(rest[0], folder, invocation)
        case "remove": throw invocation.usage(tr("documents anchors remove needs COUNTRY"))
        case let word?: throw invocation.usage(tr("documents anchors has no action \(word)"))
        }
    }

    private static var now: Int { time(nil) }

    // MARK: import

    private static func importFiles(_ paths: [String], _ folder: String, _ invocation: Invocation) async throws {
        let pinned = try invocation.fingerprint(of: .signer, hint: tr("the publisher of the list names it"))
        let present = await DocumentAnchorFolder(folder) { Output.ignored($0) }.anchors(at: now)
        var chosen = DocumentAnchorImport(present: present, at: now)
        for path in paths {
            let content = try FileContent.read(
                path == "-" ? "/dev/stdin" : path,
                limit: DocumentAnchorFile.maximumLength
            )
            chosen.add(path, content)
        }
        chosen.decide()
        let mayBeTrusted = !chosen.questions.isEmpty
        if let pinned {
            chosen.accept(fingerprint: pinned)
        } else if !chosen.questions.isEmpty {
            let questions = chosen.questions
            if try await agrees(to: questions) { chosen.accept(questions) }
        }
        chosen.finish()
        if !AnchorFiles.hasRoom(for: chosen.files.keys, in: folder) { chosen.leaveOutSigners() }
        for note in chosen.notes { Output.note(tr(note).printable) }
        for complaint in chosen.complaints { Output.note(tr("left \(complaint)").printable) }
        guard !chosen.files.isEmpty else {
            throw CommandFailure(
                tr(
                    "nothing was imported: \(chosen.complaints.first ?? Phrase("you trust none of it"))"
                ).printable,
                hint: mayBeTrusted
                    ? tr("--signer SHA256 trusts a list without a question; badgectl documents --help")
                    : tr("badgectl documents --help says what can be imported")
            )
        }
        try write(chosen.files, folder, "documents anchors import")
        guard !invocation.wantsJSON else { return print(chosen.anchors) }
        let unreadable = chosen.malformed > 0 ? tr(", \(chosen.malformed) cannot be read") : ""
        let taken = tr("\(count(chosen.files.count, tr("file"), tr("files"))) taken") + unreadable
        let trusted = authorities(chosen.anchors.count, chosen.anchors.countries.count)
        let isOne = chosen.anchors.count == 1
        let said = isOne ? tr("\(taken); \(trusted) is trusted.") : tr("\(taken); \(trusted) are trusted.")
        Output.line(said + " " + tr("badged uses what is in \(folder)."))
    }

    /// Writes files into a folder with authorities.
    static func write(_ files: [String: [UInt8]], _ folder: String, _ command: String) throws {
        guard AnchorFiles.hasRoom(for: files.keys, in: folder) else {
            throw CommandFailure(
                tr("\(folder) would have more than \(AnchorFiles.maximumCount) files, and badged reads no more"),
                hint: tr("remove the files that you do not need, then import again")
            )
        }
        do throws(SystemError) {
            try AnchorWriter(folder: folder).write(files)
        } catch {
            throw CommandFailure(error, in: command)
        }
    }

    /// Shows what nobody who is trusted has signed, and asks once.
    static func agrees(to questions: [DocumentAnchorImport.Question]) async throws -> Bool {
        guard let terminal = TerminalSource() else {
            throw CommandFailure(
                usage: tr("nobody who is trusted has signed \(questions[0].place), and there is no terminal to ask on"),
                hint:
                    tr(
                        "--signer \(Hex.encode(questions[0].fingerprint)) trusts it, if its publisher names the same SHA-256"
                    )
            )
        }
        for question in questions {
            let countries = question.countries.joined(separator: " ")
            let rows =
                (question.doubt.map { [(tr("doubt"), DaemonWords.text($0))] } ?? []) + [
                    ("SHA-256", Hex.encode(question.fingerprint)),
                    (tr("brings"), "\(authorities(question.authorities, question.countries.count)): \(countries)"),
                    (tr("newest"), tr("of \(question.newest)")),
                ]
            terminal.say("\(question.place): \(question.name)".printable + "\n" + Help.columns(rows))
        }
        while true {
            guard case .text(let answer) = await terminal.ask(tr("Trust this? [y, n] ")) else { return false }
            if answer.isYes { return true }
            if answer.isNo { return false }
            terminal.say(tr("Type y or n."))
        }
    }

    // MARK: list and remove

    private static func list(_ folder: String, _ invocation: Invocation) async throws {
        let anchors = await DocumentAnchorFolder(folder) { Output.ignored($0) }.anchors(at: now)
        guard anchors.count > 0 else {
            throw CommandFailure(
                tr("\(folder) has no authority of electronic documents"),
                hint: tr("import a master list: sudo badgectl documents anchors import FILE")
            )
        }
        guard !invocation.wantsJSON else { return print(anchors) }
        let countries = Dictionary(grouping: anchors.all) { $0.subject.country ?? "?" }
        let rows = countries.sorted { $0.key < $1.key }.map { country, certificates in
            let last = certificates.map(\.validity.upperBound).max().map(DocumentTime.text) ?? ""
            return (country, tr("\(certificates.count), valid until \(last)"))
        }
        Output.line(Help.columns(rows, indentation: ""))
        Output.line(
            "\(authorities(anchors.count, countries.count)), \(count(anchors.linkCount, tr("link"), tr("links"))), "
                + tr(
                    "\(count(anchors.revocationListCount, tr("revocation list"), tr("revocation lists"))) in \(folder)"
                )
        )
    }

    private static func authorities(_ count: Int, _ countries: Int) -> String {
        tr(
            "\(Self.count(count, tr("authority"), tr("authorities"))) of \(Self.count(countries, tr("country"), tr("countries")))"
        )
    }

    private static func count(_ count: Int, _ one: String, _ many: String) -> String {
        "\(count) \(count == 1 ? one : many)"
    }

    /// One object for each authority.
    private static func print(_ anchors: DocumentAnchors) {
        let sorted = anchors.all.sorted {
            ($0.subject.text, $0.validity.lowerBound) < ($1.subject.text, $1.validity.lowerBound)
        }
        for certificate in sorted {
            Output.object { object in
                object.member("country", certificate.subject.country)
                object.member("name", certificate.subject.text)
                object.member("from", DocumentTime.text(certificate.validity.lowerBound))
                object.member("until", DocumentTime.text(certificate.validity.upperBound))
                object.member("sha256", Hex.encode(certificate.fingerprint))
            }
        }
    }

    private static func remove(_ country: String, _ folder: String, _ invocation: Invocation) throws {
        let letters = country.uppercased()
        guard letters.utf8.count == 2, letters.utf8.allSatisfy({ (0x41...0x5A).contains($0) }) else {
            throw CommandFailure(
                usage: tr("COUNTRY has two letters"),
                hint: tr("badgectl documents anchors list shows them")
            )
        }
        let names =
            (CertificateFiles.names(in: folder, suffix: "", maximumCount: .max) ?? [])
            .filter { $0.hasPrefix(letters + "-") }
        guard !names.isEmpty else {
            throw CommandFailure(
                tr("\(folder) has no file of \(letters)"),
                hint: tr("badgectl documents anchors list shows the countries")
            )
        }
        for name in names where unlink("\(folder)/\(name)") != 0 {
            let (isDenied, text) = (errno == EACCES || errno == EPERM, DaemonWords.text(errorText()))
            throw CommandFailure(
                isDenied ? .denied : .failed,
                tr("cannot remove \(folder)/\(name): \(text)"),
                hint: isDenied ? tr("run badgectl as root") : tr("see what is left: badgectl documents anchors list")
            )
        }
        invocation.show(tr("\(count(names.count, tr("file"), tr("files"))) of \(letters) removed from \(folder)."))
    }
}
