// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import Glibc
import Host
import Text

/// `badgectl anchors import`.
enum AnchorImportCommand {
    static func run(_ invocation: Invocation) async throws {
        let folder = try await invocation.trustAnchorFolder()
        let known = try knownFingerprints(invocation)
        let sources = try read(invocation)
        let present = access(folder, F_OK) == 0 ? TrustAnchors(folder: folder) : TrustAnchors()
        let selection = AnchorSelection(sources.found, known: known, present: present)
        let taken = selection.taken
        if !taken.isEmpty {
            do throws(SystemError) {
                try AnchorWriter(folder: folder).write(taken)
            } catch {
                throw CommandFailure(error, in: "anchors import")
            }
        }
        let all = present.productive + present.test + present.links + selection.decisions.map(\.certificate)
        let over = Set(all.filter { $0.expirationDate < CVDate.today }.map(\.holderName))
        for decision in selection.decisions { show(decision, over, invocation) }
        for complaint in sources.complaints { Output.note(tr("left \(complaint)").printable) }
        let here = selection.decisions.count {
            if case .present = $0.verdict { true } else { false }
        }
        guard !taken.isEmpty || here > 0 else {
            throw CommandFailure(
                tr("no certificate of a known country authority was found"),
                hint: tr("badgectl anchors --known lists the certificates that badgectl knows")
            )
        }
        if !invocation.wantsJSON {
            Output.line(tr("\(taken.count) taken, \(here) already there; badged uses what is in \(folder)."))
        }
        try report(selection, TrustAnchors(folder: folder), invocation)
    }

    /// Says until when the certificates of the folder are valid. Productive ones that are all over are a failure, and
    /// so are test ones if nothing else came.
    private static func report(
        _ selection: AnchorSelection,
        _ anchors: TrustAnchors,
        _ invocation: Invocation
    ) throws {
        let today = CVDate.today
        let uses = AuthorityUse.allCases.filter { use in
            selection.decisions.contains { decision in
                switch decision.verdict {
                case .taken(use, _), .present(use): true
                default: false
                }
            }
        }
        let newest = uses.compactMap { AuthoritySummary.newest($0, in: anchors) }
        if !invocation.wantsJSON { for one in newest { AnchorsCommand.show(one, on: today) } }
        guard let first = newest.first, first.lastDay < today else { return }
        throw CommandFailure(
            tr(
                "no certificate came that is valid today: the one of \(first.name) was valid until \(first.lastDay.text)"
            ),
            hint: tr(KnownAuthority.advice(after: first.name, first.use, on: today))
        )
    }

    private static func knownFingerprints(_ invocation: Invocation) throws -> [String: AuthorityUse] {
        var known = Dictionary(
            KnownAuthority.all.map { ($0.fingerprint, $0.use) },
            uniquingKeysWith: { first, _ in first }
        )
        let hint = tr("sha256sum FILE shows it for a certificate in DER")
        if let own = try invocation.fingerprint(of: .fingerprint, hint: hint) {
            known[Hex.encode(own)] = .productive
        }
        return known
    }

    private static func read(_ invocation: Invocation) throws -> AnchorSources {
        var paths = invocation.others
        if paths.isEmpty {
            paths = AnchorSources.installedPrograms(home: getenv("HOME").map { String(cString: $0) })
            guard !paths.isEmpty else {
                throw CommandFailure(
                    tr("no AusweisApp is installed here, which would have the certificates"),
                    hint: tr(KnownAuthority.advice(after: nil, .productive, on: CVDate.today))
                        + tr("; or name a file, folder or zip archive that has them")
                )
            }
        }
        var sources = AnchorSources()
        for path in paths { sources.add(path) }
        return sources
    }

    /// `over` are the names of authorities whose certificate is no longer valid.
    private static func show(_ decision: AnchorSelection.Decision, _ over: Set<String>, _ invocation: Invocation) {
        let certificate = decision.certificate
        func note(_ issuer: String) -> String { over.contains(issuer) ? tr(" (its own certificate is over)") : "" }
        guard !invocation.wantsJSON else { return write(decision) }
        let words: (use: AuthorityUse?, reason: String) =
            switch decision.verdict {
            case .taken(let use, .fingerprint): (use, tr("its SHA-256 is known"))
            case .taken(let use, .signed(let issuer)): (use, tr("\(issuer) has signed it\(note(issuer))"))
            case .taken(let use, .linked(let issuer)): (use, tr("\(issuer) has signed the link to it\(note(issuer))"))
            case .present(let use): (use, tr("it is already there"))
            case .left(let reason): (nil, tr(reason))
            }
        let test = words.use == .test ? tr(", for tests") : ""
        let place = words.use == nil ? " (\(decision.place))" : ""
        let name = certificate.holderName
        let outcome =
            switch decision.verdict {
            case .taken: tr("took")
            case .present: tr("kept")
            case .left: tr("left")
            }
        Output.line(
            "\(outcome) \(name), \(certificate.validity)\(test): \(words.reason)\(place)".printable
        )
    }

    /// Writes a decision as an object of JSON: badgectl(1), anchors import.
    private static func write(_ decision: AnchorSelection.Decision) {
        let words: (outcome: String, reason: String, use: AuthorityUse?, message: Phrase?) =
            switch decision.verdict {
            case .taken(let use, .fingerprint): ("took", "fingerprint", use, nil)
            case .taken(let use, .signed): ("took", "signed", use, nil)
            case .taken(let use, .linked): ("took", "linked", use, nil)
            case .present(let use): ("kept", "present", use, nil)
            case .left(let reason): ("left", "notTrusted", nil, reason)
            }
        AnchorsCommand.write(decision.certificate, words.use) { object in
            object.member("outcome", words.outcome)
            object.member("reason", words.reason)
            if let message = words.message { object.member("message", message) }
            object.member("place", decision.place)
        }
    }
}
