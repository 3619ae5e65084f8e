// SPDX-License-Identifier: GPL-3.0-or-later
package import Keycard
import Secrets
package import Store
import Text

/// The pairings of this computer with 3.x cards, in the store.
package actor KeycardPairings {
    private let open: @Sendable () throws(StoreError) -> Store?
    private var store: Result<Store?, StoreError>?

    static let space = StoreSpace("keycard pairings")

    /// - Parameter open: opens the store at its first use; nil where there is no folder for it.
    package init(_ open: @escaping @Sendable () throws(StoreError) -> Store?) { self.open = open }

    /// Returns the pairing with the card that has this instance UID; nil if there is none.
    package func pairing(with instanceUID: [UInt8]) async throws(StoreError) -> KeycardPairing? {
        guard let box = try await opened()?.value(Hex.encode(instanceUID), in: Self.space), let encoded = box.take()
        else {
            return nil
        }
        return KeycardPairing(encoded: encoded)
    }

    /// Keeps a pairing.
    /// - Throws: `.unavailable` where there is no folder for the store.
    package func keep(_ pairing: consuming KeycardPairing, with instanceUID: [UInt8]) async throws(StoreError) {
        guard let store = try opened() else { throw .unavailable("there is no state folder ($STATE_DIRECTORY)") }
        try await store.set(Hex.encode(instanceUID), in: Self.space, to: SecretBox(pairing.encoded))
    }

    /// Forgets the pairing with a card.
    package func remove(_ instanceUID: [UInt8]) async throws(StoreError) {
        try await opened()?.remove(Hex.encode(instanceUID), in: Self.space)
    }

    private func opened() throws(StoreError) -> Store? {
        if let store { return try store.get() }
        let result = Result { () throws(StoreError) in try open() }
        store = result
        return try result.get()
    }
}
