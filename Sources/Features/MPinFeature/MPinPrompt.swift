// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import MPin
import Secrets
import Server
import Text
import Wire

/// Asks for the PIN of a user: ENTER_PIN at a login, ENTER_NEW_PIN at a registration.
struct MPinPrompt: Prompt {
    typealias Answer = SecretBox

    /// What is asked: the PIN, or the second factor of MPinMFA.
    enum Factor: Int {
        case pin
        case second
    }

    let isNew: Bool
    let user: MPinUser
    let factor: Factor

    var name: String {
        isNew ? EnterNewMPinPINMessage.name.description : EnterMPinPINMessage.name.description
    }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        let question = MPinQuestion(user: user, factor: factor, number: number, error: error)
        return isNew ? EnterNewMPinPINMessage(question: question) : EnterMPinPINMessage(question: question)
    }

    static func answer(
        _ open: OpenPrompt<MPinPrompt>,
        with command: Command,
        named name: String
    ) -> CommandOutcome {
        guard name == (open.prompt.isNew ? "SET_NEW_PIN" : "SET_PIN"), open.isMeant(by: command) else {
            return .badState
        }
        let form: SecretForm =
            switch open.prompt.factor {
            case .pin: .digits(PIN.length...PIN.length)
            case .second: .text(1...64)
            }
        if let pin = open.secret(of: command, form) { open.answer(pin) }
        return .answered
    }
}

/// The members of an ENTER message.
struct MPinQuestion {
    let user: MPinUser
    let factor: MPinPrompt.Factor
    let number: Int
    let error: String?

    func write(to object: inout JSONWriter) {
        if let error { object.member("error", error) }
        object.member("question", number)
        object.member("userId", user.identity)
        object.member("backend", user.backend.text)
        object.member("pinLength", factor == .pin ? PIN.length : nil)
        object.member("factor", factor.rawValue)
    }
}

struct EnterMPinPINMessage: Message {
    static let name: StaticString = "ENTER_PIN"
    let question: MPinQuestion

    func write(to object: inout JSONWriter, _ level: APILevel) { question.write(to: &object) }
}

struct EnterNewMPinPINMessage: Message {
    static let name: StaticString = "ENTER_NEW_PIN"
    let question: MPinQuestion

    func write(to object: inout JSONWriter, _ level: APILevel) { question.write(to: &object) }
}
