// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
import Secrets
package import Store
package import TPM
import Text

/// The keys of all users, in the store of the daemon. A change is on the disk when the call returns.
///
/// Every record belongs to the system user who made it. No call has access to records of another user.
package struct Vault: Sendable {
    private let store: StateStore
    /// The TPM for new keys; nil: badged must not use one.
    let tpm: TPM?
    /// Seconds since 1970.
    package let now: @Sendable () -> Int

    package init(_ store: StateStore, tpm: TPM? = nil, now: @escaping @Sendable () -> Int = { Int(time(nil)) }) {
        (self.store, self.tpm, self.now) = (store, tpm, now)
    }

    /// The maximum number of keys of one user.
    package static let maximumKeys = 32
    /// The maximum number of bytes of the data of one key, with their tags.
    package static let maximumData = 32 * 1024
    /// How long a key for a pass may stay unsaved, in seconds.
    package static let pendingTime = 24 * 3600

    static let endpoints = StoreSpace("vault endpoints")
    static let keys = StoreSpace("vault keys")
    static let secrets = StoreSpace("vault secrets")
    static let counters = StoreSpace("vault counters")
    static let data = StoreSpace("vault data")
    static let uses = StoreSpace("vault uses")

    /// The prefix of the names of all records of one user.
    static func prefix(_ uid: UInt32) -> String { "\(uid)/" }
    static func name(_ uid: UInt32, _ id: String) -> String { prefix(uid) + id }

    /// Returns the source of the key of the store.
    package func keySource() async throws(VaultError) -> StoreKeySource {
        do throws(StoreError) {
            return try await store.required().keySource
        } catch {
            throw .store(error)
        }
    }

    /// Runs a transaction. A failure changes nothing, because `body` checks before it writes.
    func transaction<Value: Sendable>(
        _ body: @Sendable (borrowing StoreTransaction) throws(StoreError) -> Result<Value, VaultError>
    ) async throws(VaultError) -> Value {
        let result: Result<Value, VaultError>
        do throws(StoreError) {
            result = try await store.required().transaction(body)
        } catch {
            throw .store(error)
        }
        return try result.get()
    }

    // MARK: Pieces

    static func bytes(
        _ values: borrowing StoreTransaction,
        _ name: String,
        _ space: StoreSpace
    ) throws(StoreError) -> [UInt8]? {
        guard let secret = try values.value(name, in: space)?.take() else { return nil }
        return secret.withBytes { Array($0) }
    }

    static func makeID() throws(VaultError) -> String {
        do throws(CryptoError) {
            return Hex.encode(try Random.bytes(16))
        } catch {
            throw .library("\(error)")
        }
    }
}
