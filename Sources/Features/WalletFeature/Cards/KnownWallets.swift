// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
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
    func firstKey(of keyUID: [UInt8]) async throws(Failure) -> PublicKey? {
        let name = Hex.encode(keyUID)
        guard let store = try await store.opened(), let point = try await store.value(name, in: Self.space)?.take()
        else { return nil }
        // Without the key a duress wallet would not be detected.
        guard let key = try? PublicKey(point.withBytes { Array($0) }) else { throw .storeDamaged(name) }
        return key
    }

    /// Keeps the first public key of a wallet.
    func keep(_ key: PublicKey, of keyUID: [UInt8]) async throws(Failure) {
        try await store.required().set(
            Hex.encode(keyUID),
            in: Self.space,
            to: SecretBox(Secret(key.compressed))
        )
    }
}
