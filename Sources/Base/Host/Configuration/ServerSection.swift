// SPDX-License-Identifier: GPL-3.0-or-later

/// `[server]`
extension Configuration {
    mutating func readServer(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        switch key {
        case "socket": socketPath = try value.absolutePath()
        case "max_clients": limits.clients = try value.number(in: 1...100_000)
        case "max_clients_per_user": limits.clientsPerUser = try value.number(in: 1...100_000)
        case "max_workflows": limits.workflows = try value.number(in: 1...10_000)
        case "max_workflows_per_user": limits.workflowsPerUser = try value.number(in: 1...10_000)
        case "prompt_timeout": limits.promptTimeout = .seconds(try value.number(in: 10...86_400))
        default: return false
        }
        return true
    }
}
