// SPDX-License-Identifier: GPL-3.0-or-later
package import Keycard
package import Store
package import Text

/// The pairings of this computer with 3.x cards, in the store.
package struct KeycardPairings: Sendable {
    private let store: StateStore

    static let space = StoreSpace("keycard pairings")

    package init(_ store: StateStore) { self.store = store }

    /// Returns the pairing with the card that has this instance UID; nil if there is none.
    package func pairing(with instanceUID: [UInt8]) async throws(Failure) -> KeycardPairing? {
        let name = Hex.encode(instanceUID)
        guard let store = try await store.existing(), let encoded = try await store.value(name, in: Self.space)?.take()
        else { return nil }
        guard let pairing = KeycardPairing(encoded: encoded) else { throw .storeDamaged(name) }
        return pairing
    }

    /// The pairings with all cards, for GET_HEALTH.
    static let recordKind = RecordKind(space, "pairings with cards", remedy: "UNPAIR with the card deletes one") {
        KeycardPairing(encoded: $0.clone()) != nil
    }

    /// Keeps a pairing.
    /// - Throws: `.unavailable` where there is no folder for the store.
    package func keep(_ pairing: borrowing KeycardPairing, with instanceUID: [UInt8]) async throws(Failure) {
        let box = SecretBox(pairing.encoded)
        try await store.required().set(Hex.encode(instanceUID), in: Self.space, to: box)
    }

    /// Forgets the pairing with a card.
    package func remove(_ instanceUID: [UInt8]) async throws(Failure) {
        try await store.opened()?.remove(Hex.encode(instanceUID), in: Self.space)
    }
}
