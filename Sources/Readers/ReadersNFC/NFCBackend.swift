// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import Host
package import ISO7816
package import Readers
import Synchronization
import Threads

/// The backend for boards and readers that libnfc drives; for ISO/IEC 14443 cards of type A and B.
package final class NFCBackend: ReaderBackend {
    package let name = "nfc"
    private let monitor = Mutex<DeviceMonitor?>(nil)
    private let devices: Mutex<[String]>

    /// - Parameter devices: connection strings of libnfc, in addition to the devices that libnfc lists.
    package init(devices: [String] = []) { self.devices = Mutex(devices) }

    deinit { monitor.withLock { $0 }?.stop() }

    /// Starts the device monitor; a second stream ends the first. udev reports new devices. A device without such an event
    /// is found by `rescan` or `currentHealth`.
    package var events: AsyncStream<ReaderEvent> {
        // Two monitors would open the same devices.
        monitor.withLock { $0.take() }?.stop()
        let (stream, continuation) = AsyncStream.makeStream(of: ReaderEvent.self)
        let new = DeviceMonitor(devices: devices.withLock { $0 }, events: continuation)
        // Runs on another thread, because the runtime holds its lock on the cancelled task during this call.
        continuation.onTermination = { [weak new] _ in
            if let new { _ = startThread("nfc-stop") { new.stop() } }
        }
        monitor.withLock { $0 = new }
        return stream
    }

    /// Replaces the connection strings. The next `rescan` opens new devices and closes those that are no longer named.
    package func change(devices: [String]) {
        self.devices.withLock { $0 = devices }
        monitor.withLock { $0 }?.change(devices: devices)
    }

    /// Looks for devices again.
    package func rescan() { monitor.withLock { $0 }?.rescan() }

    /// Closes all devices, which switches their fields off. Takes 0.7 s at most.
    package func close() async {
        guard let monitor = monitor.withLock({ $0 }) else { return }
        await withCheckedContinuation { continuation in
            let isStarted = startThread("nfc-stop") {
                monitor.stop()
                continuation.resume()
            }
            if !isStarted { continuation.resume() }
        }
    }

    /// Connects to the card; waits while another connection to the same reader is open.
    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        guard let board = monitor.withLock({ $0 })?.board(of: insertion.reader) else { throw .serviceUnavailable }
        let turn = board.gate.enter(insertion.reader)
        let handler = board.addRemovalHandler(for: insertion) { turn.fill(false) }
        defer { board.removeRemovalHandler(handler) }
        guard await turn.value(whenCancelled: false) else {
            throw board.session(of: insertion) != nil ? .other("cancelled") : .removed
        }
        guard let session = board.session(of: insertion) else {
            board.gate.leave(insertion.reader)
            throw .removed
        }
        return NFCConnection(to: session, on: board)
    }

    package func currentHealth() async -> [HealthCheck] {
        // The user may have corrected a fault that causes no event. The result comes as a health event.
        monitor.withLock { $0 }?.retry()
        return []
    }
}
