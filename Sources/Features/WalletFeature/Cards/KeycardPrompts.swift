// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import Keycard
import Server
import Text

/// Asks for a secret of the Keycard in a reader: ENTER_PIN, ENTER_NEW_PIN, ENTER_DURESS_PIN, ENTER_PUK,
/// ENTER_NEW_PUK and ENTER_PAIRING_PASSWORD. Wallet cards have a channel of their own, so a keypad of the reader is not used.
struct KeycardPrompt: CardPrompt {
    typealias Answer = SecretBox

    enum Kind: Sendable {
        case pin(tries: Int)
        case puk(tries: Int)
        case newPIN, newPUK, pairingPassword
        /// The duress PIN of a card that gets this PIN.
        case duressPIN(besides: KeptDigits)

        var form: SecretForm {
            switch self {
            case .pin, .newPIN, .duressPIN: .digits(KeycardParameters.pinCount...KeycardParameters.pinCount)
            case .puk, .newPUK: .digits(KeycardParameters.pukCount...KeycardParameters.pukCount)
            case .pairingPassword: .text(1...128)
            }
        }

        /// The command that answers.
        var command: String {
            switch self {
            case .pin: "SET_PIN"
            case .puk: "SET_PUK"
            case .newPIN: "SET_NEW_PIN"
            case .newPUK: "SET_NEW_PUK"
            case .pairingPassword: "SET_PAIRING_PASSWORD"
            case .duressPIN: "SET_DURESS_PIN"
            }
        }

        var retryCounter: Int? {
            switch self {
            case .pin(let tries), .puk(let tries): tries
            case .newPIN, .newPUK, .pairingPassword, .duressPIN: nil
            }
        }
    }

    let kind: Kind
    let lease: CardLease
    /// The user of the workflow; nil for a workflow without users.
    let userID: String?
    /// What was wrong with the last value, at its check with the card.
    var error: Phrase?

    /// The commands that no other kind of card has.
    static let commands = [
        CommandSpec(answering: "SET_NEW_PUK"), CommandSpec(answering: "SET_PAIRING_PASSWORD"),
        CommandSpec(answering: "SET_DURESS_PIN"),
    ]

    var name: StaticString {
        switch kind {
        case .pin: "ENTER_PIN"
        case .puk: "ENTER_PUK"
        case .newPIN: "ENTER_NEW_PIN"
        case .newPUK: "ENTER_NEW_PUK"
        case .pairingPassword: "ENTER_PAIRING_PASSWORD"
        case .duressPIN: "ENTER_DURESS_PIN"
        }
    }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        // An error of a command is about a value that was not tried.
        let isWrong = error == nil && self.error != nil
        return question(number, to: session, error: error ?? self.error) { object in
            if isWrong { object.member("wrong", true) }
            if let userID { object.member("userId", userID) }
            if let retryCounter = kind.retryCounter { object.member("retryCounter", retryCounter) }
        }
    }

    func answer(in call: Call) throws(Failure) -> SecretBox {
        guard call.name == kind.command else { throw .badState }
        guard !call.arguments.has("passphrasePrefix") else {
            throw Failure(
                .wrongArgument,
                "INVALID_PASSPHRASE_PREFIX: a prefix needs the platform of OST; send the PIN without it"
            )
        }
        let value = try call.secret(kind.form)
        guard case .duressPIN(let pin) = kind else { return value }
        guard let digits = value.take() else { throw .badState }
        // With equal PINs, the card would open the duress wallet alone.
        guard !ConstantTime.equal(digits, pin.digits) else {
            throw Failure(.wrongArgument, "The duress PIN must differ from the PIN")
        }
        return SecretBox(digits)
    }
}

/// Digits that more than one step needs. They are wiped with the last reference.
final class KeptDigits: Sendable {
    let digits: Secret

    init(_ digits: consuming Secret) { self.digits = digits }
}
