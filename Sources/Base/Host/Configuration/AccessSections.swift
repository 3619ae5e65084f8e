// SPDX-License-Identifier: GPL-3.0-or-later

/// `[access]` and `[log]`
extension Configuration {
    mutating func readAccess(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        let rule = AccessRule(try value.subject(key), try value.permissions())
        access.removeAll { $0.subject == rule.subject }
        access.append(rule)
        return true
    }

    mutating func readLog(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        switch key {
        case "level": logLevel = try value.logLevel()
        default: return false
        }
        return true
    }
}

extension ConfigurationValue {
    fileprivate func logLevel() throws(StartError) -> Log.Level {
        guard let level = Log.Level(text) else { throw refuse(Log.Level.words) }
        return level
    }

    fileprivate func subject(_ key: String) throws(StartError) -> AccessRule.Subject {
        if key == "default" { return .others }
        let parts = key.split(separator: ":", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("user", 2): return .user(parts[1])
        case ("group", 2): return .group(parts[1])
        default:
            throw .inConfiguration(
                "\(place) is not a user, a group or default",
                hint: "allowed: user:NAME, group:NAME, default"
            )
        }
    }
}
