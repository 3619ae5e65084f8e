// SPDX-License-Identifier: GPL-3.0-or-later
import AnchorImport
import CountryAuthorities
import EID
import Glibc
import Text

/// `badgectl anchors import`.
enum AnchorImportCommand {
    static func run(_ invocation: Invocation) throws(Failure) -> ExitStatus {
        let folder = try invocation.anchorFolder()
        let known = try knownFingerprints(invocation)
        let sources = try read(invocation)
        let present = access(folder, F_OK) == 0 ? TrustAnchors(folder: folder) : TrustAnchors()
        let selection = AnchorSelection(sources.found, known: known, present: present)
        let taken = selection.taken
        if !taken.isEmpty {
            do throws(AnchorWriter.Fault) {
                try AnchorWriter(folder: folder).write(taken)
            } catch {
                let isDenied = error.code == EACCES || error.code == EPERM
                throw Failure(
                    isDenied ? .denied : .failed,
                    "cannot write \(error.text)",
                    hint: isDenied ? "run badgectl as root: sudo badgectl anchors import" : "nothing was changed"
                )
            }
        }
        for decision in selection.decisions { show(decision, invocation) }
        for complaint in sources.complaints { Output.note("left \(complaint)".printable) }
        let here = selection.decisions.count {
            if case .present = $0.verdict { true } else { false }
        }
        guard !taken.isEmpty || here > 0 else {
            throw Failure(
                .failed,
                "no certificate of a known country authority was found",
                hint: "badgectl anchors --known lists the certificates that badgectl knows"
            )
        }
        if !invocation.wantsJSON {
            Output.line("\(taken.count) taken, \(here) already there; badged uses what is in \(folder).")
            AnchorsCommand.showNewest(TrustAnchors(folder: folder))
        }
        return .done
    }

    private static func knownFingerprints(_ invocation: Invocation) throws(Failure) -> [String: AuthorityUse] {
        var known = Dictionary(
            KnownAuthority.all.map { ($0.fingerprint, $0.use) },
            uniquingKeysWith: { first, _ in first }
        )
        if let text = invocation.value(of: "--fingerprint") {
            guard let bytes = Hex.decode(text.filter { $0 != ":" }), bytes.count == 32 else {
                throw Failure(
                    .usage,
                    "--fingerprint needs the 64 hexadecimal digits of a SHA-256",
                    hint: "sha256sum FILE shows it for a certificate in DER"
                )
            }
            known[Hex.encode(bytes)] = .productive
        }
        return known
    }

    private static func read(_ invocation: Invocation) throws(Failure) -> AnchorSources {
        var paths = invocation.others
        if paths.isEmpty {
            paths = AnchorSources.installedPrograms(home: getenv("HOME").map { String(cString: $0) })
            guard !paths.isEmpty else {
                throw Failure(
                    .failed,
                    "no AusweisApp is installed here, which would have the certificates",
                    hint: "install it (Debian: apt install ausweisapp2), or name a file, folder or zip archive: "
                        + "badgectl anchors import SOURCE"
                )
            }
        }
        var sources = AnchorSources()
        for path in paths { sources.add(path) }
        return sources
    }

    private static func show(_ decision: AnchorSelection.Decision, _ invocation: Invocation) {
        let certificate = decision.certificate
        let words: (outcome: StaticString, use: AuthorityUse?, reason: String) =
            switch decision.verdict {
            case .taken(let use, .fingerprint): ("took", use, "its SHA-256 is known")
            case .taken(let use, .signed(let issuer)): ("took", use, "\(issuer) has signed it")
            case .present(let use): ("kept", use, "it is already there")
            case .left(let reason): ("left", nil, "it \(reason)")
            }
        guard !invocation.wantsJSON else {
            return Output.message(
                AnchorsCommand.json(certificate, words.use) { object in
                    object.member("outcome", "\(words.outcome)")
                    object.member("reason", words.reason)
                    object.member("place", decision.place)
                }
            )
        }
        let test = words.use == .test ? ", for tests" : ""
        let place = words.use == nil ? " (\(decision.place))" : ""
        let name = certificate.holderName
        Output.line("\(words.outcome) \(name), \(certificate.validity)\(test): \(words.reason)\(place)".printable)
    }
}
