// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import MPin
import Server
import Text

/// Asks for the PIN of a user: ENTER_PIN at a login, ENTER_NEW_PIN at a registration.
struct MPinPrompt: Prompt {
    typealias Answer = SecretBox

    /// What is asked: the PIN, or the second factor of MPinMFA.
    enum Factor: Equatable {
        case pin
        /// `isOptional`: an empty answer means that the user has none.
        case second(isOptional: Bool)
    }

    let isNew: Bool
    let user: StoredUser
    let factor: Factor

    var name: StaticString { isNew ? "ENTER_NEW_PIN" : "ENTER_PIN" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, error: error) { object in
            object.member("userId", user.identity)
            object.member("backend", user.backend.text)
            object.member("pinLength", factor == .pin ? PIN.length : nil)
            object.member("factor", factor == .pin ? 0 : 1)
            if case .second(true) = factor { object.member("optional", true) }
        }
    }

    func answer(in call: Call) throws(Failure) -> SecretBox {
        guard call.name == (isNew ? "SET_NEW_PIN" : "SET_PIN") else { throw .badState }
        return switch factor {
        case .pin: try call.secret(.digits(PIN.length...PIN.length))
        case .second(let isOptional): try call.secret(.text((isOptional ? 0 : 1)...64))
        }
    }
}
