// SPDX-License-Identifier: GPL-3.0-or-later
package import TPM

/// Why the store cannot be used. No case contains a value or a key.
package enum StoreError: Error, Sendable, Equatable {
    /// A file cannot be read or written; the text has the path and the reason of the system.
    case unavailable(String)
    /// Another process uses the store of this path.
    case inUse(String)
    /// A file at this path can be read or changed by other users, or belongs to another user.
    case exposed(String)
    /// There are values, but the key at this path is missing.
    case keyMissing(String)
    /// The key at this path is not the one with which the values were sealed, or has a wrong length.
    case wrongKey(String)
    /// The key is sealed by a TPM, or must be, and the TPM cannot be used.
    case tpm(TPMError)
    /// A later version of badged has written the store.
    case newer
    /// Something other than badged has changed the value with this name, or its bytes are lost.
    case damaged(String)
    /// A name or a value is longer than the store accepts.
    case tooLong
    /// SQLite or libcrypto failed; the text is for the log.
    case library(String)

    /// What happened and what to do next.
    package var text: String {
        switch self {
        case .unavailable(let reason): "\(reason): check the folder and the disk"
        case .inUse(let path): "\(path) is used by another process: end the other badged"
        case .exposed(let path): "\(path) is open to other users: chown it to the user of badged, and chmod it to 0600"
        case .keyMissing(let path): "the key \(path) is missing: restore it from a backup, or remove the store"
        case .wrongKey(let path): "the key \(path) does not open the store: restore the right key, or remove the store"
        case .tpm(.foreign):
            "the TPM that sealed the store was cleared, or is in another computer: remove the store to start again"
        case .tpm(let error): "the store is sealed by a TPM: \(error.text)"
        case .newer: "a later version of badged has written the store: install that version"
        case .damaged(let name): "the value '\(name)' in the store is damaged: restore the store from a backup"
        case .tooLong: "a name or value is too long for the store"
        case .library(let reason): "the store failed: \(reason)"
        }
    }
}
