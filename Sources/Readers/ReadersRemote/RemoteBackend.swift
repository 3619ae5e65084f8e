// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import Host
package import ISO7816
package import Readers
import RemoteIFD

/// The backend for readers that other devices lend over the network, such as a phone with AusweisApp.
package final class RemoteBackend: ReaderBackend {
    package let name = "remote"
    package let lenders: RemoteLenders

    package init(_ lenders: RemoteLenders) { self.lenders = lenders }

    /// Starts to listen for announcements; a second stream ends the first.
    package var events: AsyncStream<ReaderEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: ReaderEvent.self)
        Task { @Loop [lenders] in await lenders.start(continuation) }
        return stream
    }

    /// Connects to the card; waits while another connection to the same reader is open.
    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        try await lenders.connect(insertion)
    }

    package func currentHealth() async -> [HealthCheck] {
        // The program that held the port may have ended, which causes no event.
        await lenders.listen()
        return await lenders.health()
    }

    package func rescan() { Task { @Loop [lenders] in lenders.listen() } }

    package func close() async { await lenders.stop() }
}

/// A slot of a device, which is a reader here.
@Loop final class LenderSlot {
    /// The name of the reader.
    nonisolated let name: String
    /// The name for the device.
    let slot: String
    var description: ReaderDescription
    var insertion: Insertion?
    weak var link: LenderLink?

    init(_ status: IFDStatus, device: RemoteDevice, _ link: LenderLink) {
        // The fingerprint makes the name unique even if two devices have the same name.
        let name = "\(device.name) \(DeviceName.clean(status.slot)) (\(device.fingerprint.prefix(8)))"
        self.name = name
        slot = status.slot
        self.link = link
        description = ReaderDescription(
            name: name,
            hasKeypad: status.hasKeypad,
            hasExtendedLength: status.hasExtendedLength,
            isRemote: true
        )
    }
}
