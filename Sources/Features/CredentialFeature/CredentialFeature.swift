// SPDX-License-Identifier: GPL-3.0-or-later
package import Aliro
package import Cards
package import Concurrency
package import EID
package import Host
package import PKOC
package import Server
package import Store
import Wire

/// Reads the credentials of cards and phones that people hold to readers, and reports them.
/// docs/protocol/credentials.md.
@Loop package final class CredentialFeature: CardFeature {
    package let cardKinds: [any CardKind]
    private let watch: CredentialWatch
    private let aliro: AliroSite?
    private let bonds: AliroBonds?

    /// `site` says how cards are read. `today` is the day for which certificates are checked. Cards with Aliro are read
    /// with `aliro`; nil: they are not. `store` keeps what Aliro needs for its fast phase.
    package init(
        _ registry: ReaderRegistry,
        _ site: PKOCSite,
        aliro: AliroSite? = nil,
        store: StateStore = StateStore { () throws(StoreError) -> Store? in nil },
        today: @escaping @Sendable () -> CVDate
    ) {
        watch = CredentialWatch(site, today: today)
        let pkoc = PKOCCardKind(watch)
        self.aliro = aliro
        if let aliro {
            let bonds = AliroBonds(store, aliro)
            self.bonds = bonds
            cardKinds = [AliroCardKind(watch, aliro, bonds, next: pkoc), pkoc]
        } else {
            bonds = nil
            cardKinds = [pkoc]
        }
        registry.onRecognition { [weak self] reader, profile in
            guard let report = (profile as? any CredentialProfile)?.report else { return }
            self?.tell(report, in: reader.name)
        }
    }

    /// Returns when what Aliro needs for its fast phase is on the disk.
    package func settled() async { await bonds?.settled() }

    package var commands: [CommandSpec] {
        [
            CommandSpec("START_CREDENTIALS", permission: .credentials) { [self] session, command in
                watch.watchers[ObjectIdentifier(session)] = session
                // The first tap then does not wait for the store.
                if let bonds { Task { @Loop in _ = await bonds.known() } }
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
        guard watch.site.issuers.isEmpty, aliro?.credentials.isEmpty ?? true else {
            return [HealthCheck("credentials", ok: true)]
        }
        let advice = "No credential is accepted, because no issuer is set: set [credentials] issuers"
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
    private func tell(_ report: CredentialReport, in reader: String) {
        let sessions = watch.watchers.values
        for session in sessions { session.push(CredentialMessage(reader: reader, report: report)) }
        guard let session = sessions.first else { return }
        switch report.result {
        case .proven:
            session.server.log(.info, "card in '\(reader)': credential read with \(report.technology)")
        case .failed(let reason):
            session.server.log(
                .notice,
                "card in '\(reader)' has shown no credential with \(report.technology): \(reason)"
            )
        }
    }
}
