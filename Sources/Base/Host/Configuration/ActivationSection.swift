// SPDX-License-Identifier: GPL-3.0-or-later

/// `[activation]`
extension Configuration {
    mutating func readActivation(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        switch key {
        case "enabled": isActivationEnabled = try value.bool()
        case "port": activationPort = UInt16(truncatingIfNeeded: try value.number(in: 1...65_535))
        case "permissions": activationPermissions = try value.permissions()
        case "root_serves_all": rootServesAll = try value.bool()
        case "origins": activationOrigins = try value.origins()
        default: return false
        }
        return true
    }
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
