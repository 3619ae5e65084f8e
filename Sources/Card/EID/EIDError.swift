// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import ISO7816

/// Why a dialogue with an eID card failed.
package enum EIDError: Error, Sendable, Equatable {
    /// No answer came, or the task was cancelled between two commands.
    case card(CardError)
    /// The card refused a step with this status word. Inside a secure channel the answer was unprotected: the card has
    /// closed the channel, and the status word is not authenticated.
    case status(StatusWord)
    /// The answer breaks the protocol, or is forged. The words for the log have no data of the card or its holder.
    case protocolViolation(String)
    /// The card or the caller requires something that is not supported.
    case unsupported(String)

    init(_ error: PACEError) {
        switch error {
        case .malformed(let what): self = .protocolViolation("PACE: \(what)")
        case .invalidPoint: self = .protocolViolation("PACE: a public key is not a point of the curve")
        case .equalKeys: self = .protocolViolation("PACE: the card returned the public key of the terminal")
        case .wrongToken: self = .protocolViolation("PACE: the card's token is wrong")
        case .outOfOrder: self = .protocolViolation("PACE: a step out of order")
        case .crypto(let error): self.init(error)
        }
    }

    init(_ error: SecureMessagingError) {
        switch error {
        case .missingObject: self = .protocolViolation("secure messaging: an object is missing")
        case .malformed: self = .protocolViolation("secure messaging: malformed answer")
        case .wrongMAC: self = .protocolViolation("secure messaging: wrong checksum")
        case .tooLong: self = .unsupported("secure messaging: the command is too long")
        case .dead: self = .protocolViolation("secure messaging: the channel is closed")
        case .crypto(let error): self.init(error)
        }
    }

    init(_ error: CryptoError) {
        switch error {
        case .unsupported: self = .unsupported("cryptography: curve or algorithm is not in libcrypto")
        case .invalidLength, .invalidPoint, .invalidKey: self = .protocolViolation("cryptography: \(error)")
        case .library: self = .unsupported("cryptography: libcrypto failed")
        }
    }
}
