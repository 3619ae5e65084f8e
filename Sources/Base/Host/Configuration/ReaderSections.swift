// SPDX-License-Identifier: GPL-3.0-or-later

/// `[virtual]`, `[pcsc]` and `[nfc]`
extension Configuration {
    static let virtualKeys: Configuration.KeyTable = [
        "enabled": { all, value throws(StartError) in all.isVirtualEnabled = try value.bool() },
        "readers": { all, value throws(StartError) in all.virtualReaders = try value.number(in: 1...64) },
        "cvca": { all, value throws(StartError) in
            all.virtualTrustPoint = try value.optional(ConfigurationValue.absolutePath)
        },
    ]

    static let pcscKeys: Configuration.KeyTable = [
        "enabled": { all, value throws(StartError) in all.isPCSCEnabled = try value.bool() }
    ]

    static let nfcKeys: Configuration.KeyTable = [
        "enabled": { all, value throws(StartError) in all.isNFCEnabled = try value.bool() },
        "devices": { all, value throws(StartError) in
            all.nfcDevices = try value.optional(ConfigurationValue.connectionStrings) ?? []
        },
    ]
}

extension ConfigurationValue {
    /// Connection strings of libnfc: a driver name, optionally followed by colons and parameters.
    fileprivate func connectionStrings() throws(StartError) -> [String] {
        guard
            words.allSatisfy({ word in
                !word.isEmpty && word.utf8.count < 1024 && word.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            })
        else { throw refuse("a list such as pn532_uart:/dev/ttyUSB0:115200, pn53x_usb") }
        return words
    }
}

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
