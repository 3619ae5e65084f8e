// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import EService
package import Host
package import Server
import Text

/// Runs the dialogues of the German eID card: RUN_CHANGE_PIN, RUN_AUTH, and authentications for browsers.
@Loop package final class EIDFeature: CardFeature {
    let registry: ReaderRegistry
    let services: OnlineServices
    let now: Now
    /// How often each user interface was asked to show itself in a minute.
    var shown: [ObjectIdentifier: (minute: Int64, count: Int)] = [:]
    /// Authentications that a connection of the browser port waits for.
    var browserAuthentications: [ObjectIdentifier: BrowserVisit] = [:]
    /// The clients that are user interfaces for browsers. For each user, the last one is used.
    var userInterfaces: [Session] = []
    /// Whether a user interface of root serves the browsers of users without one.
    let rootServesAll: Bool
    let automaticPINs: AutomaticPINs

    package init(
        _ registry: ReaderRegistry,
        _ services: OnlineServices,
        rootServesAll: Bool = false,
        allowsAutomaticPINs: Bool = false,
        now: @escaping Now = { ContinuousClock.now }
    ) {
        self.registry = registry
        self.services = services
        self.now = now
        self.rootServesAll = rootServesAll
        automaticPINs = AutomaticPINs(allowsRealCards: allowsAutomaticPINs)
    }

    package let cardKinds: [any CardKind] = [EIDCardKind()]

    package var commands: [CommandSpec] {
        [
            CommandSpec(
                "RUN_CHANGE_PIN",
                ChangePINEndedMessage.name,
                permission: .cards,
                isForIdle: true,
                refusal: Self.changePINRefusal,
                runChangePIN
            ),
            CommandSpec("RUN_AUTH", AuthEndedMessage.name, permission: .cards, isForIdle: true, runAuth),
            CommandSpec(answering: "SET_CAN"),
        ] + AccessRightsPrompt.commands + browserCommands
    }

    private static func changePINRefusal(_ failure: Failure, _: Session) -> Reply {
        if let reason = FailureCode(rawValue: failure.code.rawValue) {
            return Reply(ChangePINEndedMessage(reason: reason))
        }
        return Reply(ChangePINEndedMessage.name) { $0.member("error", failure.message) }
    }

    package func health() async -> [HealthCheck] {
        let anchors = services.authorities().map {
            AuthorityHealth.check($0, in: services.anchorFolder, on: services.today())
        }
        return [anchors, services.transport?()].compactMap(\.self)
    }

    package func permissionsChanged(_ session: Session, from old: Permissions) {
        guard !session.permissions.contains(.agent) else { return }
        endUserInterface(session)
    }

    package func sessionEnded(_ session: Session) { browserOrUserInterfaceLeft(session) }

    // MARK: RUN_CHANGE_PIN

    private func runChangePIN(_ call: Call) throws(Failure) -> Reply {
        let readerName = try call.arguments.sdk("reader", .reader, \.string)
        return .workflow("CHANGE_PIN", announcedBy: WrittenMessage(ChangePINEndedMessage.name)) {
            [registry, now] workflow throws(Failure) in
            try await ChangePIN(registry, workflow, readerName: readerName, now: now).run()
            workflow.session.log(.info, "\(workflow.session.name): RUN_CHANGE_PIN ended, success")
            return Reply(ChangePINEndedMessage(reason: nil))
        }
    }
}
