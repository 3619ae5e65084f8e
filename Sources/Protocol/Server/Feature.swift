// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host

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

    /// Called when the rules for the client have changed. A workflow that needs a lost permission is cancelled already.
    func permissionsChanged(_ session: Session, from old: Permissions)

    /// Called when the connection is closed. A workflow of the session may still run until its end.
    func sessionEnded(_ session: Session)

    /// Called when a workflow has ended. Its final message is sent after this call.
    func workflowEnded(_ workflow: Workflow) async

    /// The checks of GET_HEALTH.
    func health() async -> [HealthCheck]

    /// The families of GET_METRICS. They never look at a card or at the radio.
    func metrics() -> [Metric]
}

extension Feature {
    package func sessionBegan(_ session: Session) {}
    package func levelChanged(_ session: Session) {}
    package func permissionsChanged(_ session: Session, from old: Permissions) {}
    package func sessionEnded(_ session: Session) {}
    package func workflowEnded(_ workflow: Workflow) async {}
    package func health() async -> [HealthCheck] { [] }
    package func metrics() -> [Metric] { [] }
}
