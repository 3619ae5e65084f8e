// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
import Text

/// Why a dialogue with a Keycard failed. No case contains a secret.
package enum KeycardError: Error, Sendable, Equatable {
    /// No answer came. The card may have run the command.
    case card(CardError)
    /// The card refused the command. Inside a channel the answer is authentic, so nothing has changed on the card.
    /// Without a channel, an attacker between reader and card could have sent the answer.
    case status(StatusWord)
    /// The card has ended the channel, or answered outside of it. The card may have run the command.
    case channelLost(StatusWord)
    /// The answer does not fit the command, or is forged; the text is for the log.
    case malformed(String)
    /// The command needs a channel, and there is none.
    case noChannel
    /// The card has no Keycard applet.
    case noApplet
    /// The card must be initialised first, or is initialised already.
    case wrongState
    /// The PIN, the PUK or the pairing secret has a wrong form. Nothing was sent.
    case wrongForm
    /// The command does not exist in this version of the applet.
    case unsupported
    /// The card does not know the pairing password.
    case wrongPairingPassword
    /// All pairing slots of the card are used.
    case noFreeSlot
    /// The card does not know this pairing.
    case pairingLost
    /// Neither the authority that signed this certificate nor the card itself is trusted.
    case foreignCard(KeycardCertificate)
    /// The card derives other keys than BIP-32 from the words: the duress wallet is open, or the applet is faulty.
    case wrongWallet
    case crypto(CryptoError)
}

/// Runs a cryptographic step.
func crypto<T: ~Copyable>(_ value: @autoclosure () throws(CryptoError) -> T) throws(KeycardError) -> T {
    try translating(KeycardError.crypto, value())
}

func crypto<T: ~Copyable>(_ body: () throws(CryptoError) -> T) throws(KeycardError) -> T {
    try translating(KeycardError.crypto, body)
}
