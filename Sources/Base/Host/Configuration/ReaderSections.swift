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
