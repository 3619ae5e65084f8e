// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
import Text

/// Why a step of a protocol with a chip failed, on the side of the terminal or of the chip.
package enum ChipError: Error, Sendable, Equatable {
    /// No answer came, or the task was cancelled between two commands.
    case card(CardError)
    /// The card refused a step with this status word. Inside a secure channel the answer was unprotected: the card has
    /// closed the channel, and the status word is not authenticated.
    case status(StatusWord)
    /// The answer breaks the protocol, or is forged. The words for the log have no data of the card or its holder.
    case protocolViolation(String)
    /// The card or the caller requires something that is not supported.
    case unsupported(String)
}

/// PACE. The run is over after each of them.
extension ChipError {
    /// The structure, a tag or a length is wrong; words for the log.
    package static func pace(_ what: String) -> Self { .protocolViolation("PACE: \(what)") }
    /// The other side sent a point that is not on the curve.
    package static let invalidPoint = pace("a public key is not a point of the curve")
    /// The other side sent our own public key. TR-03110-2 3.2.
    package static let equalKeys = pace("the card returned the public key of the terminal")
    /// The other side's token is wrong: its password differs, or messages were changed on the way.
    package static let wrongToken = pace("the card's token is wrong")
    /// A step was called out of order.
    package static let outOfOrder = pace("a step out of order")
}

/// Secure messaging. The channel is dead after each of them.
extension ChipError {
    /// A mandatory object is missing. The chip answers 6987.
    package static let missingObject = protocolViolation("secure messaging: an object is missing")
    /// Order, length, padding or status is wrong, or the bytes are not objects. The chip answers 6988.
    package static let malformedMessage = protocolViolation("secure messaging: malformed answer")
    /// The cryptographic checksum is wrong. The chip answers 6988.
    package static let wrongMAC = protocolViolation("secure messaging: wrong checksum")
    /// The protected command is too long for an APDU.
    package static let tooLong = unsupported("secure messaging: the command is too long")
    /// The channel is dead, or it is the turn of the other side.
    package static let dead = protocolViolation("secure messaging: the channel is closed")
}

extension ChipError {
    /// Tells why a cryptographic step failed.
    package init(_ error: CryptoError) {
        self =
            switch error {
            case .unsupported: .unsupported("cryptography: curve or algorithm is not in libcrypto")
            case .invalidPoint: .invalidPoint
            case .invalidLength, .invalidKey: .protocolViolation("cryptography: \(error)")
            case .library: .unsupported("cryptography: libcrypto failed")
            }
    }
}

/// Runs a cryptographic step.
package func cryptoStep<T: ~Copyable>(_ value: @autoclosure () throws(CryptoError) -> T) throws(ChipError) -> T {
    try translating(ChipError.init, value())
}

package func cryptoStep<T: ~Copyable>(_ body: () throws(CryptoError) -> T) throws(ChipError) -> T {
    try translating(ChipError.init, body)
}

/// Runs an exchange with the card.
/// - Throws: `.card` when no answer came.
package func answered<T>(_ answer: @autoclosure () async throws(CardError) -> T) async throws(ChipError) -> T {
    try await awaiting(orThrow: ChipError.card, await answer())
}

extension CardChannel {
    /// Sends one command and returns its answer.
    /// - Throws: `.card` when no answer came.
    package func exchange(_ command: CommandAPDU) async throws(ChipError) -> ResponseAPDU {
        try await answered(await transmit(command))
    }
}
