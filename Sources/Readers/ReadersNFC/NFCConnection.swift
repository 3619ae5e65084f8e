// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Synchronization

/// The connection of one user to a card in the field of a device.
final class NFCConnection: CardConnection {
    private let board: Board
    private let session: CardSession
    private let isClosed = Mutex(false)

    /// The caller has passed the board's gate. The connection leaves the gate at its end.
    init(to session: CardSession, on board: Board) {
        (self.board, self.session) = (board, session)
        board.hold()
    }

    deinit {
        guard close() else { return }
        // The next user waits at the gate until the card is reset.
        session.reset { [board] in board.leave() }
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard !isClosed.withLock({ $0 }) else { throw .other("the connection to the card has been closed") }
        return try await session.run { $0.transmitOrFail(command) }
    }

    func disconnect(reset: Bool) async {
        guard close() else { return }
        if reset {
            _ = try? await session.run { card -> Result<Void, CardError> in
                card.resetIfUsed()
                return .success(())
            }
        }
        board.leave()
    }

    /// Marks the connection as closed; true for the first call.
    private func close() -> Bool {
        isClosed.withLock { isClosed in
            defer { isClosed = true }
            return !isClosed
        }
    }
}

extension Board {
    /// Ends a connection and lets the next user pass the gate.
    fileprivate func leave() {
        release()
        gate.leave(reader)
    }
}
