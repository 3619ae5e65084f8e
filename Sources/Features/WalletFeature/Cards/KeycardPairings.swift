// SPDX-License-Identifier: GPL-3.0-or-later
package import Keycard
import Secrets
package import Store
import Text

/// The pairings of this computer with 3.x cards, in the store.
package struct KeycardPairings: Sendable {
    private let store: StateStore

    static let space = StoreSpace("keycard pairings")

    package init(_ store: StateStore) { self.store = store }

    /// Returns the pairing with the card that has this instance UID; nil if there is none.
    package func pairing(with instanceUID: [UInt8]) async throws(StoreError) -> KeycardPairing? {
        guard let store = try await store.existing(),
            let encoded = try await store.value(Hex.encode(instanceUID), in: Self.space)?.take()
        else { return nil }
        return KeycardPairing(encoded: encoded)
    }

    /// Keeps a pairing.
    /// - Throws: `.unavailable` where there is no folder for the store.
    package func keep(_ pairing: borrowing KeycardPairing, with instanceUID: [UInt8]) async throws(StoreError) {
        let box = SecretBox(pairing.encoded)
        try await store.required().set(Hex.encode(instanceUID), in: Self.space, to: box)
    }

    /// Forgets the pairing with a card.
    package func remove(_ instanceUID: [UInt8]) async throws(StoreError) {
        try await store.opened()?.remove(Hex.encode(instanceUID), in: Self.space)
    }
}
