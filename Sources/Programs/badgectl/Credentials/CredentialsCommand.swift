// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import OSDP
import Text

/// The commands for credentials that people tap.
let credentialFeature = FeatureCommands(
    group: .doors,
    commands: [CredentialsCommand.spec],
    describeCard: { card in
        if card.kind == "tag" { return tr("tag, known by its number only") }
        guard let name = ["pkoc": "PKOC", "aliro": "Aliro"][card.kind] else { return nil }
        let versions = card.members["versions"]?.array?.compactMap(\.string).joined(separator: ", ") ?? ""
        return tr("\(name) credential") + (versions.isEmpty ? "" : tr(", version \(versions)"))
    }
)

/// `badgectl credentials`: shows what a card or phone shows that is put on a reader.
enum CredentialsCommand {
    static let spec = ShellCommand(
        name: "credentials",
        summary: "show the credential of the next card or phone on a reader",
        options: [
            OptionSpec(.watch, "show every credential, until Ctrl-C"),
            OptionSpec(.format, ValueSpec("FORMAT"), "show the number that a door panel would get"),
            OptionSpec(.ndef, "also show the text or address in a tag"),
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
            """
            --format names a format of osdp.conf(5), with its options in quotes, such as 'h10301 facility=118'. Formats
            of one's own are read from /etc/badged/osdp.conf. No panel is told.
            """,
            "Without --watch: ends with 0 after a credential, and with 1 after a card that has shown none.",
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let isWatching = invocation.has(.watch)
        let name = invocation.value(of: .format)
        let format = try name.map(Self.format)
        let connection = try await invocation.connect(keepsEvents: true)
        _ = try await connection.startCredentials(readsNDEF: invocation.has(.ndef))
        Output.note(tr("Waiting for a card or phone. Put it on a reader; Ctrl-C ends."))
        // Without the permission readers nothing is said.
        let readers = (try? await connection.readers()) ?? []
        if let first = readers.first, readers.allSatisfy(\.isInsertable) {
            Output.note(
                tr(
                    "hint: there is only the virtual reader \(first.name): another program puts cards into it, with SET_CARD"
                ).printable
            )
        }
        for await event in connection.events {
            guard let credential = event.message as? Credential else { continue }
            if let format, let name {
                invocation.show(line(credential, as: format, named: name))
            } else {
                invocation.show(line(credential))
            }
            if isWatching { continue }
            if credential.key == nil { throw ExitStatus.failed }
            return
        }
        throw connection.ending ?? ClientError.closed
    }

    /// A format of badged-osdp, or one of osdp.conf.
    private static func format(_ text: String) throws -> CardFormat {
        let words = text.split(separator: " ").map(String.init)
        if let format = try? CardFormat(words: words) { return format }
        var errors: [StartError] = []
        let own = OSDPConfiguration(path: OSDPConfiguration.defaultPath, errors: &errors).formats
        do throws(Malformed) {
            return try CardFormat(words: words, own)
        } catch {
            throw CommandFailure(
                .usage,
                tr("cannot use --format '\(text)': \(error.words)"),
                hint: tr("see osdp.conf(5)")
            )
        }
    }

    /// Such as `Desk: h10301, 26 bits: bb032180`.
    static func line(_ credential: Credential, as format: CardFormat, named name: String) -> String {
        let card = PresentedCard(
            protocol: credential.technology,
            point: credential.key?.point,
            isListed: credential.isListed,
            tag: credential.tag.map { ($0.uid, $0.isRandom) },
            raw: credential.raw.map { CardBits(count: $0.bits, bytes: $0.data) },
            reason: credential.reason
        )
        guard let card, card.reason == nil else { return line(credential) }
        do throws(Malformed) {
            let number = try format.number(of: card)
            return tr("\(credential.reader): \(name), \(number.count) bits: \(Hex.encode(number.bytes))")
        } catch {
            return tr("\(credential.reader): no number as \(name): \(error.words)")
        }
    }

    /// Such as `Desk: 3f1e4cc6d712764d (4548157090586326605), pkoc-se1`.
    static func line(_ credential: Credential) -> String {
        if let tag = credential.tag { return "\(credential.reader): \(text(tag))" }
        if let raw = credential.raw {
            return tr("\(credential.reader): \(raw.bits) bits \(Hex.encode(raw.data)), proves nothing")
        }
        guard let key = credential.key else {
            return tr(
                "\(credential.reader): no credential, \(ResultWords.text(credential.reason ?? "unknown")), \(credential.technology)"
            )
        }
        var text =
            "\(credential.reader): \(Hex.encode(key.numbers[64] ?? [])) (\(key.decimal)), \(credential.technology)"
        if let certificate = credential.certificate {
            text += tr(
                ", certificate \(ResultWords.text(certificate.state)) of \(certificate.issuer) for \(certificate.subject)"
            )
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
