// SPDX-License-Identifier: GPL-3.0-or-later

/// `[virtual]`, `[pcsc]` and `[nfc]`
extension Configuration {
    mutating func readVirtual(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        switch key {
        case "enabled": isVirtualEnabled = try value.bool()
        case "readers": virtualReaders = try value.number(in: 1...64)
        case "cvca": virtualTrustPoint = try value.optional(ConfigurationValue.absolutePath)
        default: return false
        }
        return true
    }

    mutating func readPCSC(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        switch key {
        case "enabled": isPCSCEnabled = try value.bool()
        default: return false
        }
        return true
    }

    mutating func readNFC(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        switch key {
        case "enabled": isNFCEnabled = try value.bool()
        case "devices": nfcDevices = try value.optional(ConfigurationValue.connectionStrings) ?? []
        default: return false
        }
        return true
    }
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
