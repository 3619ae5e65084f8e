// SPDX-License-Identifier: GPL-3.0-or-later

/// The limits for clients: `[server]` in badged.conf(5).
package struct ServerLimits: Sendable, Equatable {
    /// `max_clients`: connections at a time, 1 to 100 000.
    package var clients = 1000
    /// `max_clients_per_user`: connections of one user at a time.
    package var clientsPerUser = 250
    /// `max_workflows`: workflows at a time, 1 to 10 000.
    package var workflows = 100
    /// `max_workflows_per_user`: workflows of one user at a time. Each has at most one open prompt.
    package var workflowsPerUser = 25
    /// `prompt_timeout`: the timeout for the answer to a prompt.
    package var promptTimeout = Duration.seconds(600)
    /// `shared_prompt_timeout`: the time for all questions of a workflow while another user waits for its card.
    package var sharedPromptTimeout = Duration.seconds(120)

    package init() {}

    /// The connections that one user may have: no user takes more than a quarter of the table.
    package var clientsOfOneUser: Int { min(clientsPerUser, max(1, clients / 4)) }

    /// The workflows that one user may run: no user takes more than a quarter of the table.
    package var workflowsOfOneUser: Int { min(workflowsPerUser, max(1, workflows / 4)) }
}

/// `[server]`
extension Configuration {
    static let serverKeys: Configuration.KeyTable = [
        "socket": .path(\.socketPath),
        "max_clients": .number(\.limits.clients, in: 1...100_000),
        "max_clients_per_user": .number(\.limits.clientsPerUser, in: 1...100_000),
        "max_workflows": .number(\.limits.workflows, in: 1...10_000),
        "max_workflows_per_user": .number(\.limits.workflowsPerUser, in: 1...10_000),
        "prompt_timeout": .init { all, value throws(StartError) in
            all.limits.promptTimeout = .seconds(try value.number(in: 10...86_400))
        },
        "shared_prompt_timeout": .init { all, value throws(StartError) in
            all.limits.sharedPromptTimeout = .seconds(try value.number(in: 10...86_400))
        },
    ]
}
