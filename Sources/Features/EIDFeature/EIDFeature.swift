// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import EService
package import Host
package import Server
import Wire

/// Runs the dialogues of the German eID card: RUN_CHANGE_PIN, RUN_AUTH, and authentications for browsers.
@Loop package final class EIDFeature: CardFeature {
    let registry: ReaderRegistry
    let services: OnlineServices
    let now: Now
    /// Authentications that a connection of the browser port waits for.
    var browserAuthentications: [ObjectIdentifier: Authentication] = [:]
    /// The clients that are user interfaces for browsers. For each user, the last one is used.
    var userInterfaces: [Session] = []
    /// Whether a user interface of root serves the browsers of users without one.
    let rootServesAll: Bool

    package init(
        _ registry: ReaderRegistry,
        _ services: OnlineServices,
        rootServesAll: Bool = false,
        now: @escaping Now = { ContinuousClock.now }
    ) {
        (self.registry, self.services, self.now) = (registry, services, now)
        self.rootServesAll = rootServesAll
    }

    package let cardKinds: [any CardKind] = [EIDCardKind()]

    package var commands: [CommandSpec] {
        let runs = [
            CommandSpec("RUN_CHANGE_PIN", permission: .cards) { [self] session, command in
                runChangePIN(session, command)
            },
            CommandSpec("RUN_AUTH", permission: .cards) { [self] session, command in runAuth(session, command) },
        ]
        return runs + [CommandSpec(answering: "SET_CAN")] + AccessRightsPrompt.commands + browserCommands
    }

    package func health() async -> [HealthCheck] {
        services.authorities().map { [AuthorityHealth.check($0, on: services.today())] } ?? []
    }

    package func sessionEnded(_ session: Session) { browserOrUserInterfaceLeft(session) }

    // MARK: RUN_CHANGE_PIN

    private func runChangePIN(_ session: Session, _ command: Command) -> CommandOutcome {
        guard session.workflow == nil else { return .badState }
        let readerName: String?
        switch command.string("reader") {
        case .missing: readerName = nil
        case .invalid:
            session.answer(ChangePINRefusedMessage(error: "Invalid name"), to: command)
            return .answered
        case .value(let name): readerName = name
        }
        if let refusal = session.workflowRefusal() {
            session.answer(ChangePINRefusedMessage(error: refusal), to: command)
            return .answered
        }
        session.takeStatusFlag(command)
        session.start("CHANGE_PIN", announcedBy: ChangePINStartedMessage()) { [registry, now] workflow in
            let reason = await ChangePIN(registry, workflow, readerName: readerName, now: now).run()
            session.server.log(
                reason.logLevel,
                "\(session.name): CHANGE_PIN ended, \(reason?.rawValue ?? "success")"
            )
            return ChangePINEndedMessage(reason: reason)
        }
        return .answered
    }
}

extension FailureCode? {
    /// The level of the log line about the end of a workflow: failures are notices, unless the user cancelled.
    var logLevel: Log.Level {
        switch self {
        case nil, .userCancelled: .info
        default: .notice
        }
    }
}

extension Session {
    /// Applies `status` of a RUN command. Its last boolean value decides whether STATUS is sent without GET_STATUS.
    func takeStatusFlag(_ command: Command) {
        if case .value(let flag) = command.bool("status") { wantsStatus = flag }
    }
}
