// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
package import Concurrency
package import DoorReaders
import Host

/// What the owner of the radio asks of the scan.
extension Radio: RadioScan {
    package func reserve(_ adapter: Int, _ isReserved: Bool) {
        for scanner in allScanners { scanner.reserve(adapter, isReserved) }
    }

    package func waitUntilLeft(_ adapter: Int, within limit: Milliseconds) async {
        for scanner in allScanners { await scanner.waitUntilLeft(adapter, within: limit) }
    }

    package func searches(_ adapter: Int) -> Bool { demand != nil && scanners.first?.searches(adapter) == true }

    package var readsDevices: Bool { scanners.first?.readsDevices == true }

    package func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool {
        guard demand != nil, let scanner = scanners.first else { return false }
        return await scanner.beginConnection(to: address, adapter: adapter)
    }

    package func endConnection(to address: DeviceAddress, adapter: Int) {
        for scanner in allScanners { scanner.endConnection(to: address, adapter: adapter) }
    }
}

extension Radio {
    /// The number of the adapter that opens a reader: the one that receives it best, or another one if badged.conf does not
    /// let that one open readers; nil: no adapter of this computer may open readers.
    package func openingAdapter(for reader: DoorReader) -> Int? {
        let rules = configuration.adapters
        guard !rules.rules.isEmpty, let status = scanners.first?.status else { return reader.adapter }
        let opening = (status.adapters + status.unused).filter { rules.mayOpen($0) }
        if opening.contains(where: { $0.number == reader.adapter }) { return reader.adapter }
        return (opening.first(where: \.isPowered) ?? opening.first)?.number
    }
}

/// Connections that no opening owns.
extension Radio {
    /// How long a program may take from its connection to a reader until it listens to the reader, in milliseconds.
    static let connectionTime: Milliseconds = 10_000

    /// Ends the connections that a badged that was killed has left behind.
    func endLeftConnections() {
        guard let connections else { return }
        Task { @Loop in
            for reader in await connections.strangers(endsUnused: true) where reader.isEnded {
                log("\(reader.adapter): ended a connection to the reader \(reader.address), which no program used")
            }
        }
    }
}

/// Knows the connections of the host to readers.
@Loop package protocol ReaderConnections: AnyObject {
    /// Returns the readers to which an unpaired connection exists that is none of badged's openings. With `endsUnused`,
    /// connections are ended whose notifications no program receives.
    func strangers(endsUnused: Bool) async -> [ConnectedReader]
}

/// A reader that is connected to this computer, but not by an opening of badged.
package struct ConnectedReader: Sendable, Equatable {
    package let address: String
    /// Such as `hci0`.
    package let adapter: String
    /// The connection was ended.
    package let isEnded: Bool

    package init(address: String, adapter: String, isEnded: Bool) {
        self.address = address
        self.adapter = adapter
        self.isEnded = isEnded
    }
}
