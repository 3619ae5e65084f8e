// SPDX-License-Identifier: GPL-3.0-or-later

extension OSDPPeripheral {
    package enum Security: String, Sendable, CaseIterable { case required, optional, off }

    package struct Settings: Sendable {
        package var address: UInt8 = 0
        package var baud = 9600
        package var security = Security.required
        package var key: OSDPKey?
        /// Whether the panel may change address and baud rate.
        package var acceptsCommunication = false
        package var leds = 1
        package var hasBuzzer = true
        package var rows = 1
        package var outputs = 0
        /// How long a card waits for its panel.
        package var wait: Int64 = 5000
        /// What is shown while the panel is silent, and its text.
        package var silence = OSDPDisplay.Silence.keep
        package var silenceText = ""
        /// Whether the panel checks the signatures of cards with PKOC itself.
        package var asksCards = false
        package var serial: UInt32 = 0
        package var firmware: [UInt8] = [0, 0, 0]

        package init() {}
    }
}

/// What a peripheral says about itself.
extension OSDPPeripheral.Settings {
    /// Vendor (a local identifier, without a registered OUI) and model.
    private static let identity: [UInt8] = [0x42, 0x44, 0x47, 1]

    private var serialBytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: serial >> (8 * $0)) } }

    /// The identifier of the secure channel.
    var identifier: [UInt8] { Self.identity + serialBytes }

    var identification: [UInt8] { Self.identity + [1] + serialBytes + firmware }

    /// PDCAP: function, level and number of each thing that is there. `isInstalling`: SCBK-D is accepted.
    func capabilities(isInstalling: Bool) -> [UInt8] {
        var list: [[UInt8]] = []
        if outputs > 0 { list.append([2, 2, UInt8(truncatingIfNeeded: outputs)]) }
        list.append([3, 1, 0])
        if leds > 0 { list.append([4, 4, UInt8(truncatingIfNeeded: leds)]) }
        if hasBuzzer { list.append([5, 2, 1]) }
        if rows > 0 { list.append([6, 1, 1]) }
        list.append([8, 1, 0])
        if security != .off { list.append([9, 1, isInstalling ? 1 : 0]) }
        list.append([10, UInt8(OSDPFrame.largest & 0xFF), UInt8(OSDPFrame.largest >> 8)])
        list.append([11, UInt8(OSDPFrame.largest & 0xFF), UInt8(OSDPFrame.largest >> 8)])
        list.append([13, 0, 1])
        list.append([16, 2, 0])
        return list.flatMap(\.self)
    }
}
