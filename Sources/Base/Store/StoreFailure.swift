// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Why the store cannot be used. No text contains a value or a key.
extension Failure.Code {
    /// A file cannot be read or written.
    package static let storeUnavailable = Self("StoreUnavailable")
    /// Another process uses the store.
    package static let storeInUse = Self("StoreInUse")
    /// A file can be read or changed by other users, or belongs to another user.
    package static let storeExposed = Self("StoreExposed")
    /// There are values, but their key is missing.
    package static let storeKeyMissing = Self("StoreKeyMissing")
    /// The key is not the one with which the values were sealed, or has a wrong length, or the value that checks it is
    /// damaged.
    package static let storeWrongKey = Self("StoreWrongKey")
    /// A later version of badged has written the store.
    package static let storeNewer = Self("StoreNewer")
    /// Something other than badged has changed a value, or its bytes are lost.
    package static let storeDamaged = Self("StoreDamaged")
    /// A name or a value is longer than the store accepts.
    package static let storeTooLong = Self("StoreTooLong")
    /// SQLite or libcrypto failed.
    package static let storeFailed = Self("StoreFailed")
}

extension Failure {
    /// `reason` has the path and the reason of the system.
    package static func storeUnavailable(_ reason: Phrase) -> Failure {
        Failure(.storeUnavailable, reason, advice: "check the folder and the disk")
    }

    package static func storeInUse(_ path: String) -> Failure {
        Failure(.storeInUse, "\(path) is used by another process", advice: "end the other badged")
    }

    package static func storeExposed(_ path: String) -> Failure {
        Failure(
            .storeExposed,
            "\(path) is open to other users",
            advice: "chown it to the user of badged, and chmod go= it"
        )
    }

    /// The database was removed or emptied; its key is there.
    package static func storeEmpty(_ path: String, key: String) -> Failure {
        Failure(
            .storeDamaged,
            "\(path) is empty or missing, and its key \(key) is there",
            advice: "restore \(path) from a backup, or remove \(key) to begin with an empty store"
        )
    }

    package static func storeKeyCut(_ path: String) -> Failure {
        Failure(
            .storeDamaged,
            "the key \(path) is cut off",
            advice: "restore it from a backup, or remove the store"
        )
    }

    /// `places` are those where the key can be.
    package static func storeKeyMissing(_ places: String) -> Failure {
        Failure(
            .storeKeyMissing,
            "the key of the store is missing: there is none of \(places)",
            advice: "restore it from a backup, or remove the store"
        )
    }

    package static func storeWrongKey(_ path: String) -> Failure {
        Failure(
            .storeWrongKey,
            "the key \(path) does not open the store",
            advice: "restore the right key, or remove the store"
        )
    }

    /// The key has the right form, and does not open the value that was sealed when the store was made.
    package static func storeUnopened(_ path: String) -> Failure {
        Failure(
            .storeWrongKey,
            "the key \(path) does not open the store: it is another key, or the record that checks it is damaged",
            advice: "restore the right key, or the store from a backup; otherwise remove the store"
        )
    }

    package static var storeNewer: Failure {
        Failure(.storeNewer, "a later version of badged has written the store", advice: "install that version")
    }

    package static func storeDamaged(_ name: String) -> Failure {
        Failure(
            .storeDamaged,
            "the value '\(name)' in the store is damaged",
            advice: "delete it, or restore the store from a backup"
        )
    }

    package static var storeTooLong: Failure { Failure(.storeTooLong, "a name or value is too long for the store") }

    package static func storeFailed(_ reason: Phrase) -> Failure {
        Failure(.storeFailed, "the store failed: \(reason)")
    }

    /// Whether the store or its TPM cannot be used.
    package var isOfStore: Bool {
        let codes: [Code] = [
            .storeUnavailable, .storeInUse, .storeExposed, .storeKeyMissing, .storeWrongKey, .storeNewer,
            .storeDamaged, .storeTooLong, .storeFailed, .tpmUnavailable, .tpmLocked, .tpmForeign,
        ]
        return codes.contains(code)
    }

    /// The failure of the TPM that seals the key of the store.
    package var sealing: Failure {
        guard code != .tpmForeign else {
            return Failure(
                .tpmForeign,
                "the TPM that sealed the store was cleared, or is in another computer",
                advice: "restore store.tpm from a backup if it has changed; otherwise remove the store to start again"
            )
        }
        var failure = self
        failure.text = "the store is sealed by a TPM: \(text)"
        return failure
    }
}
