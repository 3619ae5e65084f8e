// SPDX-License-Identifier: GPL-3.0-or-later

/// Readers over the network: `[remote]`.
package struct RemoteConfiguration: Sendable, Equatable {
    /// `enabled`: whether readers of other devices are used.
    package var isEnabled = false
    /// `share`: whether `readers` are lent to other devices.
    package var isShared = false
    package var readers: [String] = []
    /// `interfaces`: empty for all with a broadcast address.
    package var interfaces: [String] = []
    /// `name`: the name of this host for other devices; nil: its host name.
    package var name: String?

    package init() {}

    mutating func read(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        switch key {
        case "enabled": isEnabled = try value.bool()
        case "share": isShared = try value.bool()
        case "readers": readers = value.list
        case "interfaces": interfaces = try value.interfaces()
        case "name": name = value.text.isEmpty ? nil : value.text
        default: return false
        }
        return true
    }
}

extension ConfigurationValue {
    /// Names of network interfaces, which have at most 15 bytes.
    fileprivate func interfaces() throws(StartError) -> [String] {
        guard list.allSatisfy({ $0.utf8.count < 16 && !$0.contains("/") }) else {
            throw refuse("a comma-separated list of network interfaces such as eth0")
        }
        return list
    }
}
