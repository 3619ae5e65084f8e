// SPDX-License-Identifier: GPL-3.0-or-later

/// The section `[ble]` of badged.conf(5): settings of the scan for door readers.
package struct RadioConfiguration: Sendable, Equatable {
    package enum ScannerChoice: String, Sendable, CaseIterable {
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
    package var backend = ScannerChoice.auto
    /// The capture file of `backend = replay`.
    package var replay: String?
    /// The adapters that scan and open.
    package var adapters = AdapterRules()
    /// dB that are added to every signal strength of an adapter.
    package var offsets: [AdapterName: Int] = [:]
    /// Whether adapters also receive on the coded PHY.
    package var usesCodedPHY = false
    package var sensitivity = Sensitivity.normal
    package var codeEncoding = CodeEncoding.binary
    /// After this many seconds without an advertisement, the scan is checked and recovered.
    package var silence = 20
    /// Whether recovery may switch an adapter off and on while other programs have connections.
    package var mayDisconnect = false
    /// Whether the last step of recovery may reset the USB device of an adapter.
    package var mayResetUSB = false
    /// Range limits in dBm, by the name of the opening type.
    package var limits: [String: Int] = [:]

    /// The values of range limits in dBm.
    private static let limitRange = -100 ... -20

    package init() {}

    /// The settings that ask for what this computer cannot do now, such as `[ble] adapters`, with the reason. `exists` is
    /// whether an adapter such as `hci0` exists.
    package func warnings(exists: (String) -> Bool) -> [(setting: String, warning: String)] {
        func missing(_ names: [AdapterName], _ key: String) -> [(setting: String, warning: String)] {
            names.map(\.text).filter { $0.hasPrefix("hci") && !exists($0) }.map { name in
                ("[ble] \(key)", "[ble] \(key): this computer has no \(name); bluetoothctl list has the addresses")
            }
        }
        var warnings = missing(adapters.rules.map(\.adapter), "adapters")
        warnings += missing(offsets.keys.sorted { $0.text < $1.text }, "adapter_offsets")
        if usesCodedPHY, backend == .bluez {
            let text = "backend = bluez cannot switch it on, because bluetoothd has no such setting: set backend = mgmt"
            warnings.append(("[ble] coded_phy", "[ble] coded_phy: \(text)"))
        }
        return warnings
    }

    static let table: Configuration.KeyTable = [
        "enabled": .bool(\.radio.isEnabled),
        "backend": .word(\.radio.backend),
        "replay": .path(\.radio.replay),
        "adapters": .form(\.radio.adapters, ConfigurationValue.adapterRules),
        "adapter_offsets": .form(\.radio.offsets, ConfigurationValue.adapterOffsets),
        "coded_phy": .bool(\.radio.usesCodedPHY),
        "usb_reset": .bool(\.radio.mayResetUSB),
        "sensitivity": .word(\.radio.sensitivity),
        "code_encoding": .word(\.radio.codeEncoding),
        "silence": .number(\.radio.silence, in: 5...3600),
        "may_disconnect": .bool(\.radio.mayDisconnect),
        "limit_proximity": .number(\.radio.limits["proximity"], in: limitRange),
        "limit_motion": .number(\.radio.limits["motion"], in: limitRange),
        "limit_seamless": .number(\.radio.limits["seamless"], in: limitRange),
        "limit_application": .number(\.radio.limits["applicationSpecific"], in: limitRange),
        "limit_enhanced_tap": .number(\.radio.limits["enhancedTap"], in: limitRange),
    ]
}
