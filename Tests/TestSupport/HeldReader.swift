// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
package import ReadersVirtual
import Synchronization
import Text

/// A plugged-in reader with a card, as a driver with a real pcscd has it. Another program can hold the card, and a test can
/// hold one command.
///
/// Like the driver, `connect` waits while the card is held, reports that, and ends at once when the task is cancelled.
/// `Tests/System/held-cards.sh` holds the driver to the same behaviour.
package final class HeldReader: Sendable {
    package static let name = "Desk"

    package let backend: ScriptedReaders
    private let card: VirtualCard
    private let state = Mutex(State())

    private struct State {
        var isHeld = false
        var waiting: [OneShot<Bool>] = []
        var count = 0
        /// The command that waits at the gate, and who waits for its arrival.
        var gate: (number: Int, open: OneShot<Void>)?
        var arrival = OneShot<Void>()
    }

    package init(_ card: VirtualCard) {
        self.card = card
        backend = ScriptedReaders { _ throws(CardError) in throw .removed }
        backend.onConnect { [weak self] _ throws(CardError) in
            guard let self else { throw .removed }
            return try await connect()
        }
        backend.add(ReaderDescription(name: Self.name))
    }

    package func insert() { backend.insert(into: Self.name) }

    // MARK: Another program

    package func hold() { state.withLock { $0.isHeld = true } }

    package func letGo() {
        let waiting = state.withLock { state in
            state.isHeld = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for turn in waiting { turn.fill(true) }
        backend.change(ReaderDescription(name: Self.name))
    }

    private func connect() async throws(CardError) -> any CardConnection {
        let turn = state.withLock { state -> OneShot<Bool>? in
            guard state.isHeld else { return nil }
            let turn = OneShot<Bool>()
            state.waiting.append(turn)
            return turn
        }
        if let turn {
            backend.hold(Self.name)
            guard await turn.value(whenCancelled: false) else { throw .cancelled }
        }
        guard !Task.isCancelled else { throw .cancelled }
        return ScriptedConnection(to: card) { [self] _ throws(CardError) in await pass() }
    }

    // MARK: The gate

    /// Holds the command with this number, counted from zero and from now.
    package func holdCommand(_ number: Int) {
        state.withLock { state in
            state.count = 0
            state.gate = (number, OneShot())
            state.arrival = OneShot()
        }
    }

    /// Waits until the command waits at the gate.
    package func arrival() async { await state.withLock { $0.arrival }.value(whenCancelled: ()) }

    package func openGate() {
        let gate = state.withLock { state in
            defer { state.gate = nil }
            return state.gate
        }
        gate?.open.fill(())
    }

    private func pass() async {
        let (open, arrival) = state.withLock { state in
            defer { state.count += 1 }
            return (state.gate?.number == state.count ? state.gate?.open : nil, state.arrival)
        }
        guard let open else { return }
        arrival.fill(())
        await withCheckedContinuation { continuation in
            Task {
                await open.value(whenCancelled: ())
                continuation.resume()
            }
        }
    }
}
