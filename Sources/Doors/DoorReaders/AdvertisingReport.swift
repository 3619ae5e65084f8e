// SPDX-License-Identifier: GPL-3.0-or-later

/// One received advertisement without its data: the sender and the signal strength.
package struct AdvertisingReport: Sendable, Equatable {
    package var address: DeviceAddress
    /// dBm; nil when the controller has not measured it.
    package var rssi: Int8?
    /// dBm at the antenna of the sender, from an extended advertisement.
    package var txPower: Int8?
    package var isScanResponse: Bool
    package var isConnectable: Bool
    /// The advertising set of an extended advertisement; nil for a legacy advertisement.
    package var advertisingSet: UInt8?
    package var part: Part
    /// The report follows another one of the same sender so soon that it is probably a later fragment of an
    /// advertisement that was not reassembled. Its data may begin within a structure.
    package var isContinuation = false

    /// Which part of a fragmented advertisement a report has. `FragmentAssembly` joins the parts.
    package enum Part: Sendable {
        /// The whole advertisement, or its last fragment.
        case whole
        /// A fragment that others follow; its data may begin or end within a structure.
        case more
        /// The last fragment that the controller received; the rest is lost.
        case cut
    }

    package init(
        address: DeviceAddress,
        rssi: Int8?,
        txPower: Int8? = nil,
        isScanResponse: Bool = false,
        isConnectable: Bool = true,
        advertisingSet: UInt8? = nil,
        part: Part = .whole
    ) {
        self.address = address
        self.txPower = txPower
        self.advertisingSet = advertisingSet
        self.part = part
        self.rssi = rssi.flatMap(Self.valid)
        self.isScanResponse = isScanResponse
        self.isConnectable = isConnectable
    }

    /// The signal strength, nil for values above +20 dBm: 127 means "not available". Vol 4, Part E, 7.7.65.2.
    package static func valid(_ rssi: Int8) -> Int8? { rssi <= 20 ? rssi : nil }
}
