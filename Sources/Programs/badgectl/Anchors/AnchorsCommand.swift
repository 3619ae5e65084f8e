// SPDX-License-Identifier: GPL-3.0-or-later
import AnchorImport
import CountryAuthorities
import EID
import Text

/// `badgectl anchors`: lists the trusted country authorities, or imports their certificates.
enum AnchorsCommand {
    static let spec = CommandSpec(
        name: "anchors",
        summary: "list the country authorities that badged trusts, or import their certificates",
        operand: ValueSpec("import", .words(["import"]), isOptional: true),
        others: ValueSpec("SOURCE", .files),
        options: [
            OptionSpec("--folder", ValueSpec("PATH", .files), "use this folder, not that of badged.conf"),
            OptionSpec("--fingerprint", ValueSpec("SHA256"), "import: also trust the certificate with this SHA-256"),
            OptionSpec("--known", "list the certificates that badgectl knows, with their SHA-256"),
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
            the chain, and says why it leaves others. It needs root. A running badged uses the certificates at once.
            """,
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        if !invocation.operand.isEmpty { return try AnchorImportCommand.run(invocation) }
        if invocation.has("--known") {
            listKnown(invocation)
        } else {
            try list(invocation)
        }
        return .done
    }

    // MARK: Lists

    private static func listKnown(_ invocation: Invocation) {
        for known in KnownAuthority.all {
            guard !invocation.wantsJSON else {
                Output.message(
                    json { object in
                        object.member("holder", known.holder)
                        object.member("issuer", known.issuer)
                        object.member("effectiveDate", known.firstDay)
                        object.member("expirationDate", known.lastDay)
                        object.member("use", known.use.rawValue)
                        object.member("sha256", known.fingerprint)
                    }
                )
                continue
            }
            let origin = describe(isRoot: known.issuer == known.holder, known.issuer, known.use)
            Output.line("\(known.holder)  \(known.firstDay) to \(known.lastDay)  \(origin)")
            Output.line("  \(known.fingerprint)")
        }
    }

    private static func list(_ invocation: Invocation) throws(Failure) {
        let folder = try invocation.anchorFolder()
        let anchors = TrustAnchors(folder: folder)
        let groups: [(AuthorityUse, [CVCertificate])] = [
            (.productive, TrustAnchors.connected(anchors.productive, anchors.links)),
            (.test, TrustAnchors.connected(anchors.test, anchors.links)),
        ]
        guard !anchors.productive.isEmpty || !anchors.test.isEmpty else {
            throw Failure(
                .failed,
                "\(folder) has no certificate of a country authority",
                hint: "import the certificates: sudo badgectl anchors import"
            )
        }
        for warning in anchors.warnings { Output.note("ignored: \(warning)") }
        if invocation.wantsJSON {
            for (use, certificates) in groups {
                for certificate in certificates { Output.message(AnchorsCommand.json(certificate, use)) }
            }
            return
        }
        let rows = groups.flatMap { use, certificates in
            certificates.sorted { $0.holderName < $1.holderName }.map {
                ($0.holderName, "\($0.validity)  \(describe($0, use))")
            }
        }
        Output.line(Help.columns(rows, indentation: ""))
        showNewest(anchors)
    }

    /// Says how long the newest certificate is valid.
    static func showNewest(_ anchors: TrustAnchors) {
        guard let newest = AuthoritySummary(anchors, learnt: []).newest else { return }
        let isOver = newest.lastDay < CVDate.today
        Output.line(
            "The newest certificate, of \(newest.name), \(isOver ? "was" : "is") valid until \(newest.lastDay.text)."
        )
        if isOver { Output.line("Newer ones are needed, for example those of a newer AusweisApp.") }
    }

    // MARK: Texts

    static func describe(_ certificate: CVCertificate, _ use: AuthorityUse) -> String {
        describe(isRoot: certificate.isRoot, certificate.issuerName, use)
    }

    private static func describe(isRoot: Bool, _ issuer: String, _ use: AuthorityUse) -> String {
        (isRoot ? "root" : "signed by \(issuer)") + (use == .test ? ", for tests" : "")
    }

    static func json(
        _ certificate: CVCertificate,
        _ use: AuthorityUse?,
        _ more: (inout JSONWriter) -> Void = { _ in }
    ) -> String {
        json { object in
            object.member("holder", certificate.holderName)
            object.member("issuer", certificate.issuerName)
            object.member("effectiveDate", certificate.effectiveDate.text)
            object.member("expirationDate", certificate.expirationDate.text)
            object.member("use", use?.rawValue)
            object.member("sha256", AnchorSelection.fingerprint(of: certificate))
            more(&object)
        }
    }

    private static func json(_ body: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter()
        writer.object(body)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
