// SPDX-License-Identifier: GPL-3.0-or-later

/// `[ble]` of badged.conf(5): the scan for door readers.
package struct RadioConfiguration: Sendable, Equatable {
    /// The way to the radio.
    package enum Backend: String, Sendable, CaseIterable {
        /// The best one that works.
        case auto
        /// The management socket of the kernel.
        case mgmt
        /// bluetoothd over D-Bus.
        case bluez
        /// A capture file.
        case replay
    }

    package enum Sensitivity: String, Sendable, CaseIterable { case high, normal, low }
    package enum CodeEncoding: String, Sendable, CaseIterable { case binary, decimal }

    package var isEnabled = true
    package var backend = Backend.auto
    /// The file of `backend = replay`.
    package var replay: String?
    package var sensitivity = Sensitivity.normal
    /// How lock service codes stand in a service UUID.
    package var codeEncoding = CodeEncoding.binary
    /// Silent for so many seconds, a scan is suspected to be dead.
    package var silence = 20
    /// Switch an adapter off and on although it has connections of others.
    package var mayDisconnect = false
    /// dBm, by the names of the opening types.
    package var limits: [String: Int] = [:]

    /// Keys of the limits, and the opening types they are for.
    static let limitKeys = [
        "limit_proximity": "proximity", "limit_motion": "motion", "limit_seamless": "seamless",
        "limit_application": "applicationSpecific", "limit_enhanced_tap": "enhancedTap",
    ]

    package init() {}
}
