// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import Wire

/// One kind of dialogue with everything that belongs to it. The server looks nothing else up.
///
/// A feature is registered by one entry in the list that Programs/badged gives to `SocketServer`.
@Loop package protocol Feature: AnyObject {
    /// Every command of the feature.
    var commands: [CommandSpec] { get }

    /// A client has connected: what it hears before it asks for anything.
    func sessionBegan(_ session: Session)

    /// The client has chosen another API level.
    func levelChanged(_ session: Session)

    /// The connection is closed. A workflow of the session may still be on its way to its end.
    func sessionEnded(_ session: Session)

    /// A workflow has come to its end. Its final message is sent when this returns.
    func workflowEnded(_ workflow: Workflow) async

    /// The checks of GET_HEALTH.
    func health() async -> [HealthCheck]
}

extension Feature {
    package func sessionBegan(_ session: Session) {}
    package func levelChanged(_ session: Session) {}
    package func sessionEnded(_ session: Session) {}
    package func workflowEnded(_ workflow: Workflow) async {}
    package func health() async -> [HealthCheck] { [] }
}

/// One command of the protocol.
package struct CommandSpec: Sendable {
    /// `cmd`.
    package let name: String
    /// The lowest API level at which the command is known.
    package let level: APILevel
    /// What the client must be allowed to do.
    package let permission: Permissions
    /// Carries the command out and answers it.
    package let perform: @Loop (Session, Command) -> CommandOutcome

    package init(
        _ name: String,
        level: APILevel = .one,
        permission: Permissions,
        perform: @escaping @Loop (Session, Command) -> CommandOutcome
    ) {
        (self.name, self.level, self.permission, self.perform) = (name, level, permission, perform)
    }
}

package enum CommandOutcome: Sendable {
    /// The command is answered, or its answer is on the way.
    case answered
    /// The command does not fit the state of the session: BAD_STATE.
    case badState
}
