// SPDX-License-Identifier: GPL-3.0-or-later

/// The section `[ble]` of badged.conf(5): settings of the scan for door readers.
package struct RadioConfiguration: Sendable, Equatable {
    package enum Backend: String, Sendable, CaseIterable {
        /// The best backend that works.
        case auto
        /// The management socket of the kernel.
        case mgmt
        /// bluetoothd over D-Bus.
        case bluez
        /// A capture file.
        case replay
    }

    /// The sensitivity, which shifts all range limits.
    package enum Sensitivity: String, Sendable, CaseIterable { case high, normal, low }

    /// How a service UUID contains the lock service code. Binary codes above 9 are likely but not proven.
    package enum CodeEncoding: String, Sendable, CaseIterable {
        case binary
        /// Each hexadecimal digit is a decimal digit: code 33 as 000033.
        case decimal
    }

    package var isEnabled = true
    package var backend = Backend.auto
    /// The capture file of `backend = replay`.
    package var replay: String?
    package var sensitivity = Sensitivity.normal
    package var codeEncoding = CodeEncoding.binary
    /// After this many seconds without an advertisement, the scan is checked and recovered.
    package var silence = 20
    /// Whether recovery may switch an adapter off and on while other programs have connections.
    package var mayDisconnect = false
    /// Range limits in dBm, by the name of the opening type.
    package var limits: [String: Int] = [:]

    /// The opening type of each limit key.
    static let limitKeys = [
        "limit_proximity": "proximity", "limit_motion": "motion", "limit_seamless": "seamless",
        "limit_application": "applicationSpecific", "limit_enhanced_tap": "enhancedTap",
    ]

    package init() {}

    mutating func read(_ key: String, _ value: ConfigurationValue) throws(StartError) -> Bool {
        switch key {
        case "enabled": isEnabled = try value.bool()
        case "backend": backend = try value.word()
        case "replay": replay = try value.absolutePath()
        case "sensitivity": sensitivity = try value.word()
        case "code_encoding": codeEncoding = try value.word()
        case "silence": silence = try value.number(in: 5...3600)
        case "may_disconnect": mayDisconnect = try value.bool()
        case "limit_proximity", "limit_motion", "limit_seamless", "limit_application", "limit_enhanced_tap":
            limits[Self.limitKeys[key] ?? key] = try value.number(in: -100 ... -20)
        default: return false
        }
        return true
    }
}
