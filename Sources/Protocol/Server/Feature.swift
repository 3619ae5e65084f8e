// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import Wire

/// The commands, messages and workflows of one subject, such as the eID card.
///
/// One entry in the list that Programs/badged passes to `SocketServer` registers a feature.
@Loop package protocol Feature: AnyObject {
    /// Every command of the feature.
    var commands: [CommandSpec] { get }

    /// Called when a client has connected, to send the first messages.
    func sessionBegan(_ session: Session)

    /// Called when the client has chosen another API level.
    func levelChanged(_ session: Session)

    /// Called when the connection is closed. A workflow of the session may still run until its end.
    func sessionEnded(_ session: Session)

    /// Called when a workflow has ended. Its final message is sent after this call.
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
    /// The name of the command, `cmd`.
    package let name: String
    /// The lowest API level that has the command.
    package let level: APILevel
    /// The permissions that the client needs.
    package let permission: Permissions
    /// Executes the command and answers it.
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
    /// The command is answered, or its answer is being prepared.
    case answered
    /// The command does not fit the state of the session: BAD_STATE.
    case badState
}
