// SPDX-License-Identifier: GPL-3.0-or-later
import Secp256k1
import Secrets
import Store
import Text

/// The wallets whose keys badged has derived itself, in the store: the public key m/44'/60'/0'/0/0 of each key UID.
///
/// A card that reports another public key for the key UID has opened its duress wallet, or is faulty.
struct KnownWallets: Sendable {
    private let store: StateStore

    static let space = StoreSpace("keycard wallets")

    init(_ store: StateStore) { self.store = store }

    /// Returns the first public key of a wallet; nil if badged has not loaded this wallet.
    func firstKey(of keyUID: [UInt8]) async throws(StoreError) -> PublicKey? {
        guard let store = try await store.opened(),
            let point = try await store.value(Hex.encode(keyUID), in: Self.space)?.take()
        else { return nil }
        return try? PublicKey(point.withBytes { Array($0) })
    }

    /// Keeps the first public key of a wallet.
    func keep(_ key: PublicKey, of keyUID: [UInt8]) async throws(StoreError) {
        try await store.required().set(
            Hex.encode(keyUID),
            in: Self.space,
            to: SecretBox(Secret(key.compressed))
        )
    }
}
