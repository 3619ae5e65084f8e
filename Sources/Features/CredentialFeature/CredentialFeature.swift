// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
package import Host
package import PKOC
package import Server
import Text
import Wire

/// Reads the credentials of cards and phones that people hold to readers, and reports them.
/// docs/protocol/credentials.md.
@Loop package final class CredentialFeature: CardFeature {
    package let cardKinds: [any CardKind]
    private let site: PKOCSite
    private let tapReaders: [any TapReader]
    private let taps: Taps

    /// `site` has the settings that CREDENTIALS reports. `tapReaders` are tried in their order, and so are their kinds
    /// of cards.
    package init(_ registry: ReaderRegistry, _ site: PKOCSite, _ tapReaders: [any TapReader]) {
        (self.site, self.tapReaders) = (site, tapReaders)
        cardKinds = tapReaders.compactMap(\.cardKind)
        taps = Taps(registry, tapReaders, tell: Self.tell)
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec("START_CREDENTIALS", CredentialsMessage.name, permission: .credentials) { [self] call in
                taps.watch(call.session)
                return Reply(state(of: call.session))
            },
            CommandSpec("STOP_CREDENTIALS", CredentialsMessage.name, permission: .credentials) { [self] call in
                taps.unwatch(call.session)
                return Reply(state(of: call.session))
            },
        ]
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
        guard site.isValidated else { return [] }
        guard !tapReaders.contains(where: \.acceptsCards) else { return [HealthCheck("credentials", ok: true)] }
        let advice = "No credential is accepted, because no issuer is set: set [credentials] issuers"
        return [HealthCheck("credentials", ok: false, advice: advice)]
    }

    private func state(of session: Session) -> CredentialsMessage {
        CredentialsMessage(
            isWatching: taps.isWatching(session),
            isValidated: site.isValidated,
            issuers: site.issuers.count
        )
    }

    /// Sends CREDENTIAL. The log has no card number.
    private static func tell(_ report: TapReport, in reader: String, to sessions: [Session]) {
        for session in sessions { session.push(CredentialMessage(reader: reader, report: report)) }
        guard let session = sessions.first else { return }
        if let reason = report.reason {
            session.log(
                .notice,
                "card in '\(reader)' has shown no credential with \(report.technology): \(reason)"
            )
        } else {
            session.log(.info, "card in '\(reader)': credential read with \(report.technology)")
        }
    }
}
