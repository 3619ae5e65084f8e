// SPDX-License-Identifier: GPL-3.0-or-later

/// `[virtual]`, `[pcsc]` and `[nfc]`
extension Configuration {
    static let virtualKeys: Configuration.KeyTable = [
        "enabled": .bool(\.isVirtualEnabled),
        "readers": .number(\.virtualReaders, in: 1...64),
        "cvca": .path(\.virtualTrustPoint),
    ]

    static let pcscKeys: Configuration.KeyTable = [
        "enabled": .bool(\.isPCSCEnabled)
    ]

    static let nfcKeys: Configuration.KeyTable = [
        "enabled": .bool(\.isNFCEnabled),
        "devices": .list(\.nfcDevices, ConfigurationValue.connectionStrings),
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
        "enabled": .bool(\.remote.isEnabled),
        "share": .bool(\.remote.isShared),
        "readers": .form(\.remote.readers, ConfigurationValue.list),
        "interfaces": .form(\.remote.interfaces, ConfigurationValue.interfaces),
        "name": .init { all, value in all.remote.name = value.text.isEmpty ? nil : value.text },
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
