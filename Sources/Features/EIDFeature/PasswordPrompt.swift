// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Host
import Readers
import Secrets
import Server
import Text
import Wire

/// Asks for a password of the card in a reader: ENTER_PIN, ENTER_CAN, ENTER_NEW_PIN and ENTER_PUK.
///
/// The answer is nil if the user types the password on the keypad of the reader.
struct PasswordPrompt: Prompt {
    enum Kind: Sendable {
        case pin, can, puk, newPIN

        /// The number of digits of a value.
        var digits: ClosedRange<Int> {
            switch self {
            case .pin, .can, .newPIN: 6...6
            case .puk: 10...10
            }
        }

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

    var name: String {
        switch kind {
        case .pin: EnterPINMessage.name.description
        case .can: EnterCANMessage.name.description
        case .newPIN: EnterNewPINMessage.name.description
        case .puk: EnterPUKMessage.name.description
        }
    }

    /// The insertion for which the password is typed.
    var isCurrent: Bool { card.lease.isCurrent }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        let question = SecretQuestion(number: number, reader: card.lease.readerState(for: session), error: error)
        return switch kind {
        case .pin: EnterPINMessage(question: question)
        case .can: EnterCANMessage(question: question)
        case .newPIN: EnterNewPINMessage(question: question)
        case .puk: EnterPUKMessage(question: question)
        }
    }

    // MARK: The answer

    /// Takes the value of SET_PIN, SET_CAN, SET_NEW_PIN or SET_PUK; nil if the keypad of the reader is used.
    func answer(in call: Call) throws(Failure) -> SecretBox? {
        guard call.name == kind.command else { throw .badState }
        guard card.lease.reader.description.hasKeypad else {
            let secret = try call.secret(.digits(digits), takesAutomatic: takesAutomatic)
            if try call.isAutomatic { try takeAutomatic(call.session) }
            return secret
        }
        guard !call.arguments.isPresent("value") else { throw Failure(.wrongArgument, "Value cannot be defined") }
        return nil
    }

    @Loop private func takeAutomatic(_ session: Session) throws(Failure) {
        do throws(Failure) {
            try card.takeAutomaticPIN()
        } catch {
            session.log(.notice, "\(session.name): \(error.text)")
            throw error
        }
        session.log(.notice, "\(session.name): the card in \(card.lease.reader.name) gets an automatic PIN")
    }
}

struct EnterCANMessage: EnterMessage {
    static let name: StaticString = "ENTER_CAN"
    let question: SecretQuestion
}
