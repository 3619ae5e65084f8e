// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import ISO7816
package import Readers
import Text

/// The backend for boards and readers that libnfc drives; for ISO/IEC 14443 cards of type A and B.
///
/// libnfc runs in the program badged-nfc, so that its faults cannot reach the memory of the daemon.
package final class NFCBackend: ReaderBackend {
    package let name = "nfc"
    /// The name of the health check without a device.
    package static let checkName = "nfc"
    let client: NFCClient

    /// - Parameters:
    ///   - devices: connection strings of libnfc, in addition to the devices that libnfc lists.
    ///   - heartbeat: the times of the questions whether badged-nfc lives.
    package init(devices: [String] = [], heartbeat: Heartbeat.Times = Heartbeat.Times()) {
        client = NFCClient(devices: devices, heartbeat: heartbeat)
    }

    deinit { Task { @Loop [client] in client.stop() } }

    /// Starts looking for devices; a second stream ends the first. udev reports new devices. A device without such an
    /// event is found by `rescan` or `currentHealth`.
    package var events: AsyncStream<ReaderEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: ReaderEvent.self)
        Task { @Loop [client] in client.start(continuation) }
        return stream
    }

    /// Replaces the connection strings. The next `rescan` opens new devices and closes those that are no longer named.
    package func change(devices: [String]) {
        Task { @Loop [client] in client.devices = devices }
    }

    /// Looks for devices again.
    package func rescan() {
        Task { @Loop [client] in client.rescan() }
    }

    /// Closes all devices, which switches their fields off. Takes 0.7 s at most.
    package func close() async { await client.close() }

    /// Connects to the card; waits while another connection to the same reader is open.
    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        try await client.connect(insertion)
    }

    package func currentHealth() async -> [HealthCheck] {
        // The user may have corrected a fault that causes no event. The result comes as a health event.
        await client.currentHealth()
    }

    package func watch(_ isOn: Bool) { Task { @Loop [client] in client.isWatched = isOn } }
}

/// The connection of one user to a card in the field of a device.
final class NFCConnection: CardConnection {
    private let client: NFCClient
    private let insertion: Insertion
    private let closed = OneShot<Void>()

    init(to insertion: Insertion, _ client: NFCClient) { (self.insertion, self.client) = (insertion, client) }

    deinit {
        guard closed.fill(()) else { return }
        Task { @Loop [client, insertion] in await client.release(insertion, reset: true) }
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard !closed.isFilled else { throw .cancelled }
        return try await client.transmit(command, to: insertion).get()
    }

    func disconnect(reset: Bool) async {
        guard closed.fill(()) else { return }
        await client.release(insertion, reset: reset)
    }
}
