// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import Host
import Text

/// `badgectl anchors`: lists the trusted country authorities, or imports their certificates.
enum AnchorsCommand {
    static let spec = ShellCommand(
        name: "anchors",
        summary: "list the country authorities that badged trusts, or import their certificates",
        operand: ValueSpec("import", .words(["import"]), isOptional: true),
        others: ValueSpec("SOURCE", .files),
        options: [
            OptionSpec(.folder, ValueSpec("PATH", .files), "use this folder, not that of badged"),
            OptionSpec(.fingerprint, ValueSpec("SHA256"), "import: also trust the certificate with this SHA-256"),
            OptionSpec(.known, "list the certificates that badgectl knows, with their SHA-256"),
        ],
        details: [
            """
            badged comes without certificates, and trusts no service until the certificates of the country authority
            are imported. The authority of the German eID card is the Federal Office for Information Security (BSI).
            """,
            """
            import looks into each SOURCE: a file, a folder, a zip archive, or - for standard input. The certificates
            may be in DER or in hexadecimal digits, also inside other data. Without SOURCE it looks into an installed
            AusweisApp. It takes the certificates whose SHA-256 it knows, and those that one of these has signed, along
            the chain, and says why it leaves others. It needs root. A running badged uses the certificates at once. Ends
            with 1 if no certificate is valid today.
            """,
        ],
        examples: [
            Example("once after the installation", "sudo badgectl anchors import"),
            Example("from a folder or a zip archive", "sudo badgectl anchors import ~/Downloads/AusweisApp.zip"),
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        if !invocation.operand.isEmpty { return try await AnchorImportCommand.run(invocation) }
        if invocation.has(.known) {
            listKnown(invocation)
        } else {
            try await list(invocation)
        }
    }

    // MARK: Lists

    private static func listKnown(_ invocation: Invocation) {
        for known in KnownAuthority.all {
            guard !invocation.wantsJSON else {
                Output.object { object in
                    object.member("holder", known.holder)
                    object.member("issuer", known.issuer)
                    object.member("effectiveDate", known.firstDay)
                    object.member("expirationDate", known.lastDay)
                    object.member("use", known.use.rawValue)
                    object.member("sha256", known.fingerprint)
                }
                continue
            }
            let origin = describe(isRoot: known.issuer == known.holder, known.issuer, known.use)
            Output.line(tr("\(known.holder)  \(known.firstDay) to \(known.lastDay)  \(origin)"))
            Output.line("  \(known.fingerprint)")
        }
    }

    private static func list(_ invocation: Invocation) async throws {
        let folder = try await invocation.trustAnchorFolder()
        let anchors = TrustAnchors(folder: folder)
        let groups: [(AuthorityUse, [CVCertificate])] = [
            (.productive, TrustAnchors.connected(anchors.productive, anchors.links)),
            (.test, TrustAnchors.connected(anchors.test, anchors.links)),
        ]
        guard !anchors.productive.isEmpty || !anchors.test.isEmpty else {
            throw CommandFailure(
                tr("\(folder) has no certificate of a country authority"),
                hint: tr("import the certificates: sudo badgectl anchors import")
            )
        }
        for warning in anchors.warnings { Output.note(tr("ignored: \(warning)").printable) }
        if invocation.wantsJSON {
            for (use, certificates) in groups {
                for certificate in certificates { write(certificate, use) }
            }
            return
        }
        let rows = groups.flatMap { use, certificates in
            certificates.sorted { $0.holderName < $1.holderName }.map {
                ($0.holderName, "\($0.validity)  \(describe($0, use))")
            }
        }
        Output.line(Help.columns(rows, indentation: ""))
        let today = CVDate.today
        for use in AuthorityUse.allCases {
            guard let newest = AuthoritySummary.newest(use, in: anchors) else { continue }
            show(newest, on: today)
            if newest.lastDay < today {
                Output.note(tr(KnownAuthority.advice(after: newest.name, use, on: today)))
            }
        }
    }

    /// Says how long the newest certificate is valid.
    static func show(_ newest: AuthoritySummary.Newest, on today: CVDate) {
        let use = newest.use == .test ? tr(" for tests") : ""
        let (name, day) = (newest.name, newest.lastDay.text)
        Output.line(
            newest.lastDay < today
                ? tr("The newest certificate\(use), of \(name), was valid until \(day).")
                : tr("The newest certificate\(use), of \(name), is valid until \(day).")
        )
    }

    // MARK: Texts

    static func describe(_ certificate: CVCertificate, _ use: AuthorityUse) -> String {
        describe(isRoot: certificate.isRoot, certificate.issuerName, use)
    }

    private static func describe(isRoot: Bool, _ issuer: String, _ use: AuthorityUse) -> String {
        (isRoot ? tr("root") : tr("signed by \(issuer)")) + (use == .test ? tr(", for tests") : "")
    }

    /// Writes a certificate as an object of JSON.
    static func write(
        _ certificate: CVCertificate,
        _ use: AuthorityUse?,
        _ more: (inout JSONWriter) -> Void = { _ in }
    ) {
        Output.object { object in
            object.member("holder", certificate.holderName)
            object.member("issuer", certificate.issuerName)
            object.member("effectiveDate", certificate.effectiveDate.text)
            object.member("expirationDate", certificate.expirationDate.text)
            object.member("use", use?.rawValue)
            object.member("sha256", AnchorSelection.fingerprint(of: certificate))
            more(&object)
        }
    }
}
