// SPDX-License-Identifier: GPL-3.0-or-later

/// Why a card with Aliro has presented no credential. The raw values are the words of `reason` in CREDENTIAL.
package enum AliroProblem: String, Error, Sendable, CaseIterable {
    /// The signature of the card does not match its key and the tap.
    case wrongSignature
    /// The answer is not encrypted with the keys of this tap: it is forged, repeated or disturbed.
    case wrongEncryption
    /// The card has refused a command, for example because it does not know the reader.
    case refused
    /// An answer is malformed.
    case malformed
    /// The card supports no version that badged supports, or does not send its key.
    case unsupported
    /// Validated mode: the key is not one of the known credentials.
    case unknownKey
    /// libcrypto failed, for example for lack of memory.
    case internalError
}
