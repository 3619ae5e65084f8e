// SPDX-License-Identifier: GPL-3.0-or-later

/// Why a card that speaks Aliro has shown no credential. The raw values are the words of `reason` in CREDENTIAL.
package enum AliroProblem: String, Error, Sendable, CaseIterable {
    /// The signature of the card does not fit its key and the tap.
    case wrongSignature
    /// The answer is not encrypted with the keys of this tap: it is forged, repeated or disturbed.
    case wrongEncryption
    /// The card has refused a command, for example because it does not know the reader.
    case refused
    /// An answer breaks its form.
    case malformed
    /// The card speaks no version that badged speaks, or does not show its key.
    case unsupported
    /// Validated mode: the key is not one of the known credentials.
    case unknownKey
    /// libcrypto failed, for example for lack of memory.
    case internalError
}
