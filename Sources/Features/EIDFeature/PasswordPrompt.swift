// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Host
import Readers
import Server
import Text

/// Asks for a password of the card in a reader: ENTER_PIN, ENTER_CAN, ENTER_NEW_PIN and ENTER_PUK.
///
/// The answer is nil if the user types the password on the keypad of the reader.
struct PasswordPrompt: CardPrompt {
    enum Kind: Sendable {
        case pin, can, puk, newPIN

        /// The number of digits of a value.
        var digits: ClosedRange<Int> {
            switch self {
            case .pin, .can, .newPIN: 6...6
            case .puk: 10...10
            }
        }

        /// Whether the client cannot see in the counter of READER if the card has refused the value.
        var hasNoCounter: Bool { self == .can || self == .puk }

        /// The command that answers.
        var command: String {
            switch self {
            case .pin: "SET_PIN"
            case .can: "SET_CAN"
            case .newPIN: "SET_NEW_PIN"
            case .puk: "SET_PUK"
            }
        }
    }

    typealias Answer = SecretBox?

    let kind: Kind
    let digits: ClosedRange<Int>
    let card: HeldEIDCard
    /// Whether a program may give the value without a person, if `AutomaticPINs` agrees.
    var takesAutomatic = false
    /// Whether the card has given no answer to the value before.
    var isUnanswered = false

    private static let unanswered: Phrase =
        "The card gave no answer, so the value may have been right; it is needed again"

    var name: StaticString {
        switch kind {
        case .pin: "ENTER_PIN"
        case .can: "ENTER_CAN"
        case .newPIN: "ENTER_NEW_PIN"
        case .puk: "ENTER_PUK"
        }
    }

    var lease: CardLease { card.lease }

    /// A reader that gets or loses its keypad asks anew, because the workflow has begun for what it was.
    @Loop var isCurrent: Bool { lease.isCurrent && hasKeypad == card.hasKeypad }

    @Loop private var hasKeypad: Bool { lease.reader.description.hasKeypad }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        // An error of a command is about a value that badged has not sent to the card.
        let tellsSilence = error == nil && isUnanswered
        return question(number, to: session, error: tellsSilence ? Self.unanswered : error) { object in
            if tellsSilence { object.member("unanswered", true) }
        }
    }

    // MARK: The answer

    /// Takes the value of SET_PIN, SET_CAN, SET_NEW_PIN or SET_PUK; nil if the keypad of the reader is used.
    func answer(in call: Call) throws(Failure) -> SecretBox? {
        guard call.name == kind.command else { throw .badState }
        guard hasKeypad else {
            let secret = try call.secret(.digits(digits), takesAutomatic: takesAutomatic)
            if try call.isAutomatic { try submitAutomatic(call.session) }
            return secret
        }
        // The SDK refuses null, too.
        switch call.command.secret("value") {
        case .missing: return nil
        default: throw Failure(.wrongArgument, "Value cannot be defined")
        }
    }

    @Loop private func submitAutomatic(_ session: Session) throws(Failure) {
        do throws(Failure) {
            try card.useAutomaticPIN()
        } catch {
            session.log(.notice, "\(session.name): \(error.text)")
            throw error
        }
        session.log(.notice, "\(session.name): the card in \(card.lease.reader.name) gets an automatic PIN")
    }
}
