// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Synchronization
import Text
import Threads

/// A card that a cancelled task leaves in the middle of a command, because nothing depends on its answer.
final class LeavableChannel: CardChannel {
    private let card: any CardChannel
    /// The last command, which may still run.
    private let exchange = Mutex<Task<Void, Never>?>(nil)

    init(_ card: any CardChannel) { self.card = card }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard !Task.isCancelled else { throw .cancelled }
        let answer = OneShot<Result<ResponseAPDU, CardError>>()
        let exchange = Task { [card] in
            _ = answer.fill(await Result { () async throws(CardError) in try await card.transmit(command) })
        }
        self.exchange.withLock { $0 = exchange }
        return try await answer.value(whenCancelled: .failure(.cancelled)).get()
    }

    /// Waits until no command runs.
    func isIdle() async { await exchange.withLock { $0 }?.value }
}
