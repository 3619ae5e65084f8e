// SPDX-License-Identifier: GPL-3.0-or-later

/// `[activation]`
extension Configuration {
    static let activationKeys: Configuration.KeyTable = [
        "enabled": { all, value throws(StartError) in all.isActivationEnabled = try value.bool() },
        "port": { all, value throws(StartError) in
            all.activationPort = UInt16(truncatingIfNeeded: try value.number(in: 1...65_535))
        },
        "permissions": { all, value throws(StartError) in all.activationPermissions = try value.permissions() },
        "root_serves_all": { all, value throws(StartError) in all.rootServesAll = try value.bool() },
        "origins": { all, value throws(StartError) in all.activationOrigins = try value.origins() },
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
