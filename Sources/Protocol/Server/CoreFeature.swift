// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Wire

/// The commands that every client needs. docs/protocol.md.
@Loop final class CoreFeature: Feature {
    let commands = [
        CommandSpec("GET_INFO", permission: []) { session, command in
            session.answer(InfoMessage(info: session.server.info), to: command)
            return .answered
        },
        CommandSpec("GET_API_LEVEL", permission: []) { session, command in
            session.answer(APILevelMessage(current: session.level, listsAvailable: true), to: command)
            return .answered
        },
        CommandSpec("SET_API_LEVEL", permission: []) { session, command in
            let error = setLevel(session, command)
            session.answer(APILevelMessage(current: session.level, error: error), to: command)
            return .answered
        },
        CommandSpec("GET_STATUS", level: .two, permission: []) { session, command in
            let workflow = session.workflow
            let status = StatusMessage(workflow: workflow?.name, progress: workflow?.progress, state: workflow?.state)
            session.answer(status, to: command)
            return .answered
        },
        CommandSpec("GET_HEALTH", permission: .readers) { session, command in
            session.answerLater(to: command) {
                var checks: [HealthCheck] = []
                for feature in session.server.features { checks += await feature.health() }
                return HealthMessage(checks: checks)
            }
            return .answered
        },
        CommandSpec("CANCEL", permission: .cards) { session, _ in
            guard let workflow = session.workflow else { return .badState }
            workflow.cancel()
            return .answered
        },
        CommandSpec(answering: "ACCEPT"),
    ]

    /// Returns the error for a refused level.
    private static func setLevel(_ session: Session, _ command: Command) -> String? {
        switch command.int("level") {
        case .missing: return "Level cannot be undefined"
        case .invalid: return "Invalid level"
        case .value(let number):
            guard let level = number.flatMap(APILevel.init(rawValue:)) else { return "Unknown level" }
            session.level = level
            for feature in session.server.features { feature.levelChanged(session) }
            return nil
        }
    }
}
