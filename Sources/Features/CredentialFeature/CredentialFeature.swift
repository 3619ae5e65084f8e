// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import Crypto
package import Host
package import Server
package import Taps
import Text

/// Reads the credentials of cards and phones that people hold to readers, and reports them.
/// docs/protocol/credentials.md.
@Loop package final class CredentialFeature: CardFeature {
    package let cardKinds: [any CardKind]
    private let site: PKOCSite
    private let tapReaders: [any TapReader]
    private let taps: Taps
    private let listed: ListedCredentials
    private var reported = LabelledCounter(
        "badged_credentials_total",
        "Taps that were reported.",
        by: "protocol",
        "verified"
    )

    /// `site` has the settings that CREDENTIALS reports. `listed` is the allow list. `tapReaders` and their kinds of
    /// cards are tried in their order. At `panelReaders` a door panel may choose what cards sign, for `questionTime`
    /// milliseconds after the tap.
    package init(
        _ registry: ReaderRegistry,
        _ site: PKOCSite,
        _ tapReaders: [any TapReader],
        listed: ListedCredentials? = nil,
        panelReaders: Set<String> = [],
        questionTime: Int64 = 5000
    ) {
        self.site = site
        self.tapReaders = tapReaders
        self.listed = listed ?? ListedCredentials(nil, nil)
        cardKinds = tapReaders.compactMap(\.cardKind)
        taps = Taps(registry, tapReaders, panelReaders, questionTime)
        taps.observer = { [weak self] in self?.report($0, in: $1, $2, to: $3) }
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec("START_CREDENTIALS", CredentialsMessage.name, permission: .credentials) {
                [self] call throws(Failure) in
                taps.watch(call.session, readsNDEF: try call.arguments.isSet("ndef"))
                return Reply(state(of: call.session))
            },
            CommandSpec("STOP_CREDENTIALS", CredentialsMessage.name, permission: .credentials) { [self] call in
                taps.unwatch(call.session)
                return Reply(state(of: call.session))
            },
            CommandSpec("REPORT_TAP", "REPORTED", permission: .report, reportTap),
            CommandSpec("CHALLENGE_CARD", "CHALLENGED", permission: [.credentials, .report], challengeCard),
        ]
    }

    /// A door panel wants to check the signature of the card itself. The answer is sent when the card has signed.
    private func challengeCard(_ call: Call) throws(Failure) -> Reply {
        let number = try call.arguments.number("number", 1...Int.max)
        // Other lengths have another meaning, as in SE V2 and over Bluetooth, and the card has one key for all.
        let length = PKOCCommand.transactionLength
        let transaction = try call.arguments.required("transaction", "\(length) bytes in hexadecimal") { value in
            value.string.flatMap { Hex.decode($0, limit: length) }.flatMap { $0.count == length ? $0 : nil }
        }
        let (session, request, name) = (call.session, call.request, call.spec.answer ?? "")
        try taps.challenge(number, transaction, site, for: session) { result in
            let message = WrittenMessage(name) { object in
                switch result {
                case .success(let proof):
                    object.member("number", number)
                    object.member("publicKey", Hex.encode(proof.key.uncompressed))
                    object.member("signature", Hex.encode(proof.signature))
                case .failure(let failure): object.member("error", failure.message)
                }
            }
            session.answer(message, to: request)
        }
        return .none
    }

    /// What a reader in the wall has read. No reader of badged has this name, so its taps cannot be imitated.
    private func reportTap(_ call: Call) throws(Failure) -> Reply {
        let reader = try call.arguments.text("reader", 1...64)
        let bits = try call.arguments.number("bits", 1...1024)
        let form = "the bits in hexadecimal, in as few bytes as they need"
        let data = try call.arguments.required("data", form) { value in
            value.string.flatMap { Hex.decode($0, limit: 128) }.flatMap { $0.count == (bits + 7) / 8 ? $0 : nil }
        }
        let format = try call.arguments.word("format", [("unspecified", "unspecified"), ("wiegand", "wiegand")])
        let uptime = try call.arguments.optionalNumber("uptime", 0...Int.max).map(Int64.init)
        guard reader.utf8.starts(with: "osdp ".utf8), PanelText.isShown(reader, 6...64) else {
            throw Failure(.wrongArgument, "reader must be 'osdp ' and a name in ASCII")
        }
        let number = taps.report(TapReport.RawRead(bits: bits, data: data, format: format, uptime: uptime), in: reader)
        return call.reply { $0.member("number", number) }
    }

    package func permissionsChanged(_ session: Session, from old: Permissions) {
        guard !session.permissions.contains(.credentials), taps.unwatch(session) else { return }
        var message = state(of: session)
        message.error = Workflow.denied
        session.push(message)
    }

    package func sessionEnded(_ session: Session) { taps.unwatch(session) }

    /// The records of the store, for GET_HEALTH.
    package nonisolated static let recordKinds = [AliroBonds.recordKind]

    package func health() async -> [HealthCheck] {
        let list = listed.health()
        guard site.isValidated else { return list }
        // Keys of the list count with Aliro.
        let hasList = listed.state.map { $0.entries > 0 } ?? false && tapReaders.contains { $0 is AliroTapReader }
        guard !hasList, !tapReaders.contains(where: \.acceptsCards) else {
            return [HealthCheck("credentials", ok: true)] + list
        }
        let advice: Phrase = "No credential is accepted, because no issuer is set: set [credentials] issuers"
        return [HealthCheck("credentials", ok: false, advice: advice)] + list
    }

    package func metrics() -> [Metric] {
        guard let list = listed.state else { return [reported.metric] }
        return [
            reported.metric, .gauge("badged_allow_list_entries", "Entries of the allow list.", list.entries),
            .gauge(
                "badged_allow_list_time_seconds",
                "When the allow list was read, in seconds since 1970.",
                Int(list.time)
            ),
        ]
    }

    private func state(of session: Session) -> CredentialsMessage {
        CredentialsMessage(
            isWatching: taps.isWatching(session),
            isValidated: site.isValidated,
            issuers: site.issuers.count
        )
    }

    /// Sends CREDENTIAL. The log has no card number.
    private func report(_ report: TapReport, in reader: String, _ number: Int, to sessions: [Session]) {
        reported.add(report.technology, report.reason == nil ? "true" : "false")
        var isListed: Bool?
        if case .proven(let proven) = report.result { isListed = listed.isListed(proven.key) }
        // A reader in the wall may have read the card before: the program that reports it, or badged, stood still.
        let now = Loop.bootClock
        var uptime = now
        if case .raw(let read) = report.result, let since = read.uptime { uptime = min(since, now) }
        let message = CredentialMessage(
            number: number,
            time: Loop.wallClock - (now - uptime),
            uptime: uptime,
            reader: reader,
            report: report,
            isListed: isListed
        )
        for session in sessions { session.push(message) }
        guard let session = sessions.first else { return }
        if case .tag(let tag, _) = report.result {
            session.log(.info, "tag in '\(reader)' read: \(tag.type.rawValue)", reader: reader)
        } else if case .raw(let read) = report.result {
            session.log(.info, "'\(reader)' has read \(read.bits) bits", reader: reader)
        } else if let reason = report.reason {
            session.log(
                .notice,
                "card in '\(reader)' has shown no credential with \(report.technology): \(reason)",
                reader: reader
            )
        } else {
            session.log(.info, "card in '\(reader)': credential read with \(report.technology)", reader: reader)
        }
    }
}
