// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// The commands for credentials that people tap.
let credentialFeature = FeatureCommands(
    group: .doors,
    commands: [CredentialsCommand.spec],
    describeCard: { card in
        if card.kind == "tag" { return tr("tag, known by its number only") }
        guard let name = ["pkoc": "PKOC", "aliro": "Aliro"][card.kind] else { return nil }
        let versions = card.members["versions"]?.array?.compactMap(\.string).joined(separator: ", ") ?? ""
        return "\(name) credential" + (versions.isEmpty ? "" : tr(", version \(versions)"))
    }
)

/// `badgectl credentials`: shows what a card or phone shows that is put on a reader.
enum CredentialsCommand {
    static let spec = ShellCommand(
        name: "credentials",
        summary: "show the credential of the next card or phone on a reader",
        options: [
            OptionSpec("--watch", "show every credential, until Ctrl-C"),
            OptionSpec("--ndef", "also show the text or address in a tag"),
        ],
        details: [
            """
            Waits for a card or phone with PKOC or Aliro. Shows its 64-bit number in hexadecimal and decimal, or the
            reason why there is no credential. A card that lies on a reader is read at once. Needs the permission
            credentials.
            """,
            """
            Of any other contactless card it shows the number (UID). Anybody can copy this number to another card, so
            it proves nothing. What --ndef shows was chosen by whoever has written the tag.
            """,
            "Without --watch: ends with 0 after a credential, and with 1 after a card that has shown none.",
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let isWatching = invocation.has("--watch")
        let connection = try await invocation.connect(keepsEvents: true)
        _ = try await connection.startCredentials(readsNDEF: invocation.has("--ndef"))
        Output.note(tr("Waiting for a card or phone. Put it on a reader; Ctrl-C ends."))
        for await event in connection.events {
            guard let credential = event.message as? Credential else { continue }
            invocation.show(line(credential))
            if isWatching { continue }
            if credential.key == nil { throw ExitStatus.failed }
            return
        }
        throw connection.ending ?? ClientError.closed
    }

    /// Such as `Desk: 3f1e4cc6d712764d (4548157090586326605), pkoc-se1`.
    static func line(_ credential: Credential) -> String {
        if let tag = credential.tag { return "\(credential.reader): \(text(tag))" }
        guard let key = credential.key else {
            return tr(
                "\(credential.reader): no credential, \(credential.reason ?? "unknown"), \(credential.technology)"
            )
        }
        var text =
            "\(credential.reader): \(Hex.encode(key.numbers[64] ?? [])) (\(key.decimal)), \(credential.technology)"
        if let certificate = credential.certificate {
            text += tr(", certificate \(certificate.state) of \(certificate.issuer) for \(certificate.subject)")
        }
        return text
    }

    /// Such as `tag 04a1b2c3d4e5f6, mifareUltralight; proves nothing; https://example.org`.
    private static func text(_ tag: Credential.Tag) -> String {
        let number = Hex.encode(tag.uid) + (tag.isRandom ? tr(" (another number at each tap)") : "")
        let records = (tag.records ?? []).map { record in
            switch record {
            case .text(let text, _): "\"\(text)\""
            case .uri(let uri): uri
            case .other(let name): tr("a record \(name)")
            }
        }
        return ([tr("tag \(number), \(tag.type)"), tr("proves nothing")] + records).joined(separator: "; ")
    }
}
