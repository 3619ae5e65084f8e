// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import Synchronization

/// One insertion of a card in the field of a device. Commands to the card run on the device's thread.
final class NFCCardSession: Sendable {
    let insertion: Insertion
    let queue = JobQueue()
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

    /// Runs `body` with the card on the device's thread; with nil when the session has ended.
    func perform(_ body: @escaping @Sendable (FieldCard?) -> Void) {
        if !queue.async({ [self] in card.withLock { body($0) } }) { body(nil) }
    }

    /// Ends the session, on the device's thread. Waiting calls of `perform` get nil.
    func end() {
        card.withLock { $0 = nil }
        queue.finish()
        while queue.serve() != .over {}
    }
}
