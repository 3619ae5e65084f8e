// SPDX-License-Identifier: GPL-3.0-or-later

/// The limits for clients: `[server]` in badged.conf(5).
package struct ServerLimits: Sendable, Equatable {
    /// `max_clients`: connections at a time, 1 to 100 000.
    package var clients = 1000
    /// `max_clients_per_user`: connections of one user at a time.
    package var clientsPerUser = 500
    /// `max_workflows`: workflows at a time, 1 to 10 000. Each authentication has a thread.
    package var workflows = 100
    /// `max_workflows_per_user`: workflows of one user at a time. Each has at most one open prompt.
    package var workflowsPerUser = 50
    /// `prompt_timeout`: the timeout for the answer to a prompt.
    package var promptTimeout = Duration.seconds(600)

    package init() {}
}
