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

    static let table: Configuration.KeyTable = [
        "enabled": { all, value throws(StartError) in all.remote.isEnabled = try value.bool() },
        "share": { all, value throws(StartError) in all.remote.isShared = try value.bool() },
        "readers": { all, value throws(StartError) in all.remote.readers = try value.list() },
        "interfaces": { all, value throws(StartError) in all.remote.interfaces = try value.interfaces() },
        "name": { all, value in all.remote.name = value.text.isEmpty ? nil : value.text },
    ]
}

extension ConfigurationValue {
    /// Names of network interfaces, which have at most 15 bytes.
    fileprivate func interfaces() throws(StartError) -> [String] {
        let names = try list()
        guard names.allSatisfy({ $0.utf8.count < 16 && !$0.contains("/") }) else {
            throw refuse("a comma-separated list of network interfaces such as eth0")
        }
        return names
    }
}
