// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import Synchronization

/// A card in the field of a device, held by one user.
final class NFCConnection: CardConnection {
    private let board: Board
    private let insertion: Insertion
    private let isClosed = Mutex(false)

    /// The caller has entered the board's gate; the connection leaves it.
    init(to insertion: Insertion, on board: Board) {
        (self.board, self.insertion) = (board, insertion)
        board.hold()
    }

    deinit {
        guard close() else { return }
        // Whoever comes next waits at the gate until the card has forgotten.
        let isQueued = board.enqueue(for: insertion) { [board, reader = insertion.reader] card in
            if let card, card.isUsed { card.resetOrFail() }
            board.leave(reader)
        }
        if !isQueued { board.leave(insertion.reader) }
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard !isClosed.withLock({ $0 }) else { throw .other("the connection to the card has been closed") }
        return try await board.run(insertion) { $0.transmitOrFail(command) }
    }

    func disconnect(reset: Bool) async {
        guard close() else { return }
        if reset {
            _ = try? await board.run(insertion) { card -> Result<Void, CardError> in
                if card.isUsed { card.resetOrFail() }
                return .success(())
            }
        }
        board.leave(insertion.reader)
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
    fileprivate func leave(_ reader: String) {
        release()
        gate.leave(reader)
    }
}
