// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
package import EID
package import Host
package import PKOC
package import Server
import Wire

/// Reads the credentials that people tap on readers, and reports them. docs/protocol/credentials.md.
@Loop package final class CredentialFeature: CardFeature {
    package let cardKinds: [any CardKind]
    private let watch: CredentialWatch

    /// `site` says how cards are read. `today` is the day for which certificates are checked.
    package init(_ registry: ReaderRegistry, _ site: PKOCSite, today: @escaping @Sendable () -> CVDate) {
        watch = CredentialWatch(site, today: today)
        cardKinds = [PKOCCardKind(watch)]
        registry.onRecognition { [weak self] reader, profile in
            guard let reading = (profile as? PKOCProfile)?.reading else { return }
            self?.report(reading, in: reader.name)
        }
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec("START_CREDENTIALS", permission: .credentials) { [self] session, command in
                watch.watchers[ObjectIdentifier(session)] = session
                session.answer(state(of: session), to: command)
                return .answered
            },
            CommandSpec("STOP_CREDENTIALS", permission: .credentials) { [self] session, command in
                watch.watchers[ObjectIdentifier(session)] = nil
                session.answer(state(of: session), to: command)
                return .answered
            },
        ]
    }

    package func sessionEnded(_ session: Session) { watch.watchers[ObjectIdentifier(session)] = nil }

    package func health() async -> [HealthCheck] {
        guard watch.site.isValidated else { return [] }
        guard watch.site.issuers.isEmpty else { return [HealthCheck("credentials", ok: true)] }
        let advice = "No card counts, because badged knows no issuer: name the issuers in [credentials] issuers"
        return [HealthCheck("credentials", ok: false, advice: advice)]
    }

    private func state(of session: Session) -> CredentialsMessage {
        CredentialsMessage(
            isWatching: watch.watchers[ObjectIdentifier(session)] != nil,
            isValidated: watch.site.isValidated,
            issuers: watch.site.issuers.count
        )
    }

    /// Tells all watching clients what a card has shown. The log has no number.
    private func report(_ reading: PKOCReading, in reader: String) {
        let sessions = watch.watchers.values
        for session in sessions { session.push(CredentialMessage(reader: reader, reading: reading)) }
        guard let session = sessions.first else { return }
        switch reading {
        case .credential(let credential):
            session.server.log(.info, "card in '\(reader)': credential read with \(credential.edition.rawValue)")
        case .failed(let problem, let edition):
            session.server.log(
                .notice,
                "card in '\(reader)' has shown no credential with \(edition.rawValue): \(problem.rawValue)"
            )
        }
    }
}
