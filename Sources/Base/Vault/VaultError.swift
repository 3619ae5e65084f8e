// SPDX-License-Identifier: GPL-3.0-or-later
import Credentials
package import Store
package import TPM

/// Why a call of the vault failed.
package enum VaultError: SigningError, Sendable, Equatable {
    /// The store cannot be used.
    case store(StoreError)
    /// The record with this name is damaged, or is not of this version.
    case damaged(String)
    /// The user has no endpoint.
    case notSetUp
    /// The user has no such key.
    case unknownKey
    /// The key cannot do this; the text says why.
    case unfit(String)
    /// A limit is reached; the text says which.
    case full(String)
    /// The key is in a TPM, or must be, and the TPM cannot be used.
    case tpm(TPMError)
    /// libcrypto failed.
    case library(String)

    package var text: String {
        switch self {
        case .store(let error): error.text
        case .damaged(let name):
            "the record '\(name)' is damaged, or a later version of badged wrote it:"
                + " restore the store from a backup, or install that version"
        case .notSetUp: "there is no endpoint: send SETUP_ENDPOINT first"
        case .unknownKey: "there is no such key"
        case .unfit(let reason), .full(let reason): reason
        case .tpm(let error): error.text
        case .library(let reason): "the cryptography failed: \(reason)"
        }
    }
}
