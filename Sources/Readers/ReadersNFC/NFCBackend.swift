// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import ISO7816
package import Readers
import Synchronization

/// Boards and readers that libnfc drives, for ISO-14443 cards of type A and B.
package final class NFCBackend: ReaderBackend {
    package let name = "nfc"
    private let scanner = Mutex<Scanner?>(nil)
    private let devices: Mutex<[String]>

    /// - Parameter devices: connection strings of libnfc, beside what it finds by itself.
    package init(devices: [String] = []) { self.devices = Mutex(devices) }

    deinit { scanner.withLock { $0 }?.stop() }

    /// Starts looking for devices; a second stream waits for the end of the first. Devices come and go by events of udev; one that
    /// gives none is found by `rescan` or by the next question for its health.
    package var events: AsyncStream<ReaderEvent> {
        // Two of them would open the same devices.
        scanner.withLock { $0.take() }?.stop()
        let (stream, continuation) = AsyncStream.makeStream(of: ReaderEvent.self)
        let new = Scanner(devices: devices.withLock { $0 }, events: continuation)
        // On another thread, as whoever cancels the consumer holds the runtime's lock on that task here.
        continuation.onTermination = { [weak new] _ in
            if let new { _ = startThread("nfc-stop") { new.stop() } }
        }
        scanner.withLock { $0 = new }
        return stream
    }

    /// Takes other connection strings than those it was made with, from the next `rescan` on. Devices that are named no
    /// more are given back then.
    package func change(devices: [String]) {
        self.devices.withLock { $0 = devices }
        scanner.withLock { $0 }?.change(devices: devices)
    }

    /// Looks for devices again.
    package func rescan() { scanner.withLock { $0 }?.rescan() }

    /// Gives all devices back: their fields go off. Returns when that is done, 0.7 s later at most.
    package func close() async {
        guard let scanner = scanner.withLock({ $0 }) else { return }
        await withCheckedContinuation { continuation in
            let isStarted = startThread("nfc-stop") {
                scanner.stop()
                continuation.resume()
            }
            if !isStarted { continuation.resume() }
        }
    }

    /// Waits while an earlier connection to the same reader lasts.
    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        guard let board = scanner.withLock({ $0 })?.board(of: insertion.reader) else { throw .serviceUnavailable }
        let turn = board.gate.enter(insertion.reader)
        let farewell = board.atEnd(of: insertion) { turn.abandon() }
        defer { board.forget(farewell) }
        guard await turn.value() != nil else {
            throw board.visit(of: insertion) != nil ? .other("cancelled") : .removed
        }
        guard let visit = board.visit(of: insertion) else {
            board.gate.leave(insertion.reader)
            throw .removed
        }
        return NFCConnection(to: visit, on: board)
    }

    package func currentHealth() async -> [HealthCheck] {
        // Whoever asks has perhaps just mended something that gives no event. The news comes as an event.
        scanner.withLock { $0 }?.retry()
        return []
    }
}
