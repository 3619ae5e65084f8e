// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Synchronization

/// One insertion of a card in the field of a device. Commands to the card run on the device's thread.
final class CardSession: Sendable {
    let insertion: Insertion
    let queue = ThreadQueue()
    /// nil when the session has ended.
    private let card: Mutex<FieldCard?>

    init(_ insertion: Insertion, of card: consuming sending FieldCard) {
        self.insertion = insertion
        self.card = Mutex(card)
    }

    /// Calls `body` with the card, unless the session has ended. For the device's thread.
    @discardableResult
    func withCard<Value: Sendable>(_ body: (FieldCard) throws(NFCCode) -> Value) throws(NFCCode) -> Value? {
        try card.withLock { card throws(NFCCode) in
            guard let card else { return nil }
            return try body(card)
        }
    }

    /// Ends the session, on the device's thread. Commands that still wait fail with `.removed`.
    func end() {
        card.withLock { $0 = nil }
        queue.finish()
        while queue.serve() != .over {}
    }

    /// Runs `body` with the card on the device's thread.
    /// - Throws: `.removed` when the session has ended.
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

    /// Resets a used card, then runs `body`. Runs `body` also when the card has left.
    func reset(then body: @escaping @Sendable () -> Void) {
        let isQueued = queue.async { [self] in
            card.withLock { $0?.resetIfUsed() }
            body()
        }
        if !isQueued { body() }
    }
}
