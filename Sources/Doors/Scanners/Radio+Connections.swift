// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders

/// Connections over the radio. The radio has one owner, which knows of scans and connections: a scan leaves the radio of an
/// adapter to a connection, and connections that no opening owns are found.
extension Radio {
    /// Leaves the radio of an adapter to a connection that is being established, until `release`.
    package func reserve(_ adapter: Int) {
        reservations[adapter, default: 0] += 1
        if reservations[adapter] == 1 { for scanner in allScanners { scanner.reserve(adapter, true) } }
    }

    package func release(_ adapter: Int) {
        guard let count = reservations[adapter] else { return }
        reservations[adapter] = count > 1 ? count - 1 : nil
        if count == 1 { for scanner in allScanners { scanner.reserve(adapter, false) } }
    }

    /// Whether the scan lets bluetoothd find devices on an adapter, until `reserve`.
    package func searches(_ adapter: Int) -> Bool {
        demand != nil && reservations[adapter] == nil && scanners.first?.searches(adapter) == true
    }

    /// Lets the system connect to a device as soon as it advertises, until `endConnection`; false when it cannot.
    package func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool {
        guard demand != nil, let scanner = scanners.first else { return false }
        return await scanner.beginConnection(to: address, adapter: adapter)
    }

    package func endConnection(to address: DeviceAddress, adapter: Int) {
        for scanner in allScanners { scanner.endConnection(to: address, adapter: adapter) }
    }

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
