// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Synchronization

/// A card in the field of a device, from its insertion to its loss: what is asked of it runs on the device's thread.
final class Visit: Sendable {
    let insertion: Insertion
    /// The executor of the actor that drives the card, too.
    let queue = ThreadQueue()
    /// nil when the visit is over.
    private let card: Mutex<FieldCard?>

    init(_ insertion: Insertion, of card: consuming sending FieldCard) {
        self.insertion = insertion
        self.card = Mutex(card)
    }

    /// For the device's thread: the card, if there still is one.
    func withCard<Value: Sendable>(_ body: (FieldCard) throws(NFCCode) -> Value) throws(NFCCode) -> Value? {
        try card.withLock { card throws(NFCCode) in
            guard let card else { return nil }
            return try body(card)
        }
    }

    /// Ends the visit, on the device's thread: who still waits for the card hears that it is gone.
    func end() {
        card.withLock { $0 = nil }
        queue.finish()
        while queue.serve() != .over {}
    }

    /// Runs `body` on the device's thread with the card.
    /// - Throws: `.removed` when the visit is over.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (FieldCard) -> Result<Value, CardError>
    ) async throws(CardError) -> Value {
        let result = await queue.run { [self] in perform(body) }
        return try (result ?? .failure(.removed)).get()
    }

    private func perform<Value: Sendable>(
        _ body: @Sendable (FieldCard) -> Result<Value, CardError>
    ) -> Result<Value, CardError> {
        card.withLock { $0.map(body) } ?? .failure(.removed)
    }

    /// Has the card forget what was done with it, then runs `body`, whether there still is a card or not.
    func reset(then body: @escaping @Sendable () -> Void) {
        let isQueued = queue.async { [self] in
            card.withLock { card in if let card, card.isUsed { card.resetOrFail() } }
            body()
        }
        if !isQueued { body() }
    }
}
