// SPDX-License-Identifier: GPL-3.0-or-later

/// `[access]` and `[log]`
extension Configuration {
    /// Reads one line of `[access]`, whose keys name users and groups.
    mutating func readAccess(_ key: String, _ value: ConfigurationValue) throws(StartError) {
        access.append(AccessRule(try value.subject(key), try value.permissions()))
    }

    static let logKeys: Configuration.KeyTable = [
        "level": .form(\.logLevel, ConfigurationValue.logLevel)
    ]
}

extension ConfigurationValue {
    package func logLevel() throws(StartError) -> Log.Level {
        guard let level = Log.Level(text) else { throw refuse(Log.Level.words) }
        return level
    }

    fileprivate func subject(_ key: String) throws(StartError) -> AccessRule.Subject {
        if key == "default" { return .others }
        let parts = key.split(separator: ":", maxSplits: 1).map(String.init)
        // A list of names would match nobody, and the line would deny nothing.
        let isName = parts.count == 2 && !parts[1].contains(",") && INIFile.trim(parts[1][...]) == parts[1]
        switch parts.first {
        case "user" where isName: return .user(parts[1])
        case "group" where isName: return .group(parts[1])
        default:
            throw .inConfiguration(
                "\(place) is not a user, a group or default",
                hint: "allowed: user:NAME, group:NAME, default; one name a line"
            )
        }
    }
}

/// `[activation]`
extension Configuration {
    static let activationKeys: Configuration.KeyTable = [
        "enabled": .bool(\.isActivationEnabled),
        "port": .init { all, value throws(StartError) in
            all.activationPort = UInt16(truncatingIfNeeded: try value.number(in: 1...65_535))
        },
        "permissions": .form(\.activationPermissions, ConfigurationValue.permissions),
        "root_serves_all": .bool(\.rootServesAll),
        "origins": .form(\.activationOrigins, ConfigurationValue.origins),
    ]
}

extension ConfigurationValue {
    /// Origins as a browser sends them: scheme, host and optionally a port; no path and no user.
    fileprivate func origins() throws(StartError) -> [String] {
        var origins: [String] = []
        for word in text.split(separator: ",") {
            let origin = INIFile.trim(word)
            let host = ["https://", "http://"].compactMap { scheme in
                origin.hasPrefix(scheme) ? origin.dropFirst(scheme.count) : nil
            }.first
            guard let host, !host.isEmpty,
                host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x2F && $0 != 0x40 })
            else { throw refuse("a comma-separated list of origins such as https://example.org") }
            origins.append(origin.lowercased())
        }
        return origins
    }
}
