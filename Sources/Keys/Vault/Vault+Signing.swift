// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Store
package import Text

/// Signatures with key pairs, and the use of keys at readers.
extension Vault {
    /// Returns a key that signs for the endpoint or for a driver.
    /// - Throws: `.unfit` for a key that has no key pair.
    package func signingKey(_ id: String, of uid: UInt32) async throws(Failure) -> any CredentialKey {
        let time = now()
        return try await transaction { values throws(Failure) in
            let record = try Self.key(values, uid, id, time)
            guard let publicKey = record.publicKey else { throw .unfit("the key cannot sign") }
            guard let secret = try values.value(Self.name(uid, id), in: Self.secrets)?.take() else {
                throw .recordDamaged(Self.name(uid, id))
            }
            switch record.protection {
            case .software: return SoftwareKey(secret, publicKey: publicKey)
            case .tpm:
                let blob = secret.withBytes { Array($0) }
                return TPMKey(key: TPM.Key(publicKey: publicKey, blob: blob), tpm: tpm)
            }
        }
    }

    /// A key that drivers may use, with its record.
    package struct UsableKey: Sendable {
        package let record: KeyRecord
        package let key: any CredentialKey
    }

    /// Returns the keys of a user that can open readers: active ones with a key pair that have not expired.
    package func usableKeys(of uid: UInt32) async throws(Failure) -> [UsableKey] {
        var usable: [UsableKey] = []
        let time = now()
        for record in try await keys(of: uid)
        where record.isUsable && !record.isExpired(at: time) && record.publicKey != nil {
            do throws(Failure) {
                usable.append(UsableKey(record: record, key: try await signingKey(record.id, of: uid)))
            } catch {
                // The other keys still open readers; GET_HEALTH tells of this one.
                guard error.code == .recordDamaged || error.code == .storeDamaged else { throw error }
            }
        }
        return usable
    }

    /// Stores that a key was used at a reader, with the current time. A damaged record is replaced, and counts no uses.
    package func used(_ id: String, isModified: Bool, of uid: UInt32) async throws(Failure) {
        let time = now()
        try await transaction { values throws(Failure) -> Void in
            _ = try Self.key(values, uid, id, time)
            var last: LastAuthentication?
            do throws(Failure) {
                last = try Self.lastUse(values, uid)
            } catch {
                guard error.code == .recordDamaged else { throw error }
            }
            let use = LastAuthentication(
                key: id,
                counter: (last?.counter ?? 0) + 1,
                isModified: isModified,
                time: time
            )
            try values.set("\(uid)", in: Self.uses, to: SecretBox(Secret(use.bytes)))
        }
    }

    /// Returns the last use of a key; nil if no key was used.
    package func lastAuthentication(of uid: UInt32) async throws(Failure) -> LastAuthentication? {
        try await transaction { values throws(Failure) in
            do throws(Failure) {
                return try Self.lastUse(values, uid)
            } catch {
                guard error.code == .recordDamaged else { throw error }
                var failure = error
                failure.advice = "use a key at a reader, which replaces the record"
                throw failure
            }
        }
    }

    private static func lastUse(
        _ values: borrowing StoreTransaction,
        _ uid: UInt32
    ) throws(Failure) -> LastAuthentication? {
        try record(values, "\(uid)", uses, { LastAuthentication($0) })
    }
}
