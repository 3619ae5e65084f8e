// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorOpening
package import DoorReaders
import Scanners
import Text

/// Connects to readers through bluetoothd. Each connection uses the bus by itself, so that the scan is not affected.
@Loop package final class BlueZConnector: DoorConnector {
    private let address: String

    /// Creates a connector on the bus with this address; nil: the system's bus.
    package init(address: String? = nil) { self.address = address ?? SystemBus.standardAddress }

    package func connect(
        _ device: DeviceAddress,
        adapter: Int,
        within limit: Milliseconds
    ) async throws(DoorLinkFailure) -> any DoorLink {
        let bus = try translating({ DoorLinkFailure.failed($0.text) }) { () throws(ScannerFault) in
            try SystemBus(address: address)
        }
        let link = BlueZLink(bus, device, adapter: adapter)
        do throws(DoorLinkFailure) {
            try await link.establish(within: limit)
        } catch {
            await link.disconnect()
            throw error
        }
        return link
    }
}
