// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Synchronization

/// A card in the field of a device, held by one user.
final class NFCConnection: CardConnection {
    private let board: Board
    private let visit: Visit
    private let isClosed = Mutex(false)

    /// The caller has entered the board's gate; the connection leaves it.
    init(to visit: Visit, on board: Board) {
        (self.board, self.visit) = (board, visit)
        board.hold()
    }

    deinit {
        guard close() else { return }
        // Whoever comes next waits at the gate until the card has forgotten.
        visit.reset { [board] in board.leave() }
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard !isClosed.withLock({ $0 }) else { throw .other("the connection to the card has been closed") }
        return try await visit.run { $0.transmitOrFail(command) }
    }

    var executor: (any SerialExecutor)? { visit.queue }

    func disconnect(reset: Bool) async {
        guard close() else { return }
        if reset {
            _ = try? await visit.run { card -> Result<Void, CardError> in
                if card.isUsed { card.resetOrFail() }
                return .success(())
            }
        }
        board.leave()
    }

    /// True the first time.
    private func close() -> Bool {
        isClosed.withLock { isClosed in
            defer { isClosed = true }
            return !isClosed
        }
    }
}

extension Board {
    /// A connection ends.
    fileprivate func leave() {
        release()
        gate.leave(reader)
    }
}
