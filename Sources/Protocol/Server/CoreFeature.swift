// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Text

/// The commands that every client needs. docs/protocol.md.
@Loop final class CoreFeature: Feature {
    let commands = [
        CommandSpec("GET_INFO", InfoMessage.name, permission: []) { call in
            Reply(InfoMessage(info: call.session.server.info, permissions: call.session.permissions.words))
        },
        CommandSpec("GET_API_LEVEL", APILevelMessage.name, permission: []) { call in
            Reply(APILevelMessage(current: call.session.level, listsAvailable: true))
        },
        CommandSpec("SET_API_LEVEL", APILevelMessage.name, permission: [], refusal: levelRefusal, setLevel),
        CommandSpec("GET_STATUS", StatusMessage.name, level: .two, permission: []) { call in
            let workflow = call.session.workflow
            return Reply(
                StatusMessage(workflow: workflow?.name, progress: workflow?.progress, state: workflow?.state)
            )
        },
        CommandSpec("GET_HEALTH", HealthMessage.name, permission: .readers, health),
        CommandSpec("GET_METRICS", MetricsMessage.name, permission: .readers) { call in
            let server = call.session.server
            return Reply(MetricsMessage(metrics: server.metrics + server.features.flatMap { $0.metrics() }))
        },
        CommandSpec("CANCEL", permission: .cards) { call throws(Failure) in
            guard let workflow = call.session.workflow else { throw .badState }
            workflow.cancel()
            return .none
        },
        CommandSpec(answering: "ACCEPT"),
    ]

    private static func levelRefusal(_ failure: Failure, _ session: Session) -> Reply {
        Reply(APILevelMessage(current: session.level, error: failure.message))
    }

    private static func setLevel(_ call: Call) throws(Failure) -> Reply {
        let number = try call.arguments.sdk("level", .level) { if case .number = $0 { $0 } else { nil } }?.int
        guard let level = number.flatMap(APILevel.init(rawValue:)) else {
            throw Failure(.wrongArgument, "Unknown level")
        }
        call.session.level = level
        for feature in call.session.server.features { feature.levelChanged(call.session) }
        return Reply(APILevelMessage(current: level))
    }

    private static func health(_ call: Call) async -> Reply {
        var checks: [HealthCheck] = []
        for feature in call.session.server.features { checks += await feature.health() }
        return Reply(HealthMessage(checks: checks))
    }
}
