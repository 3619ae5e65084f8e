// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Synchronization

/// The connection of one user to a card in the field of a device.
final class NFCConnection: CardConnection {
    private let client: NFCClient
    private let insertion: Insertion
    private let isClosed = Mutex(false)

    init(to insertion: Insertion, _ client: NFCClient) { (self.insertion, self.client) = (insertion, client) }

    deinit {
        guard close() else { return }
        Task { @Loop [client, insertion] in await client.release(insertion, reset: true) }
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard !isClosed.withLock({ $0 }) else { throw .cancelled }
        return try await client.transmit(command, to: insertion).get()
    }

    func disconnect(reset: Bool) async {
        guard close() else { return }
        await client.release(insertion, reset: reset)
    }

    /// Marks the connection as closed; true for the first call.
    private func close() -> Bool {
        isClosed.withLock { isClosed in
            defer { isClosed = true }
            return !isClosed
        }
    }
}
