// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import ReadersRemote
import Server
import Text

/// Asks for the four digits that the other device shows.
struct PairingCodePrompt: Prompt {
    typealias Answer = SecretBox

    let device: RemoteDevice
    /// The own fingerprint, which the other device may show.
    let ownFingerprint: String
    /// What was wrong with the last code.
    let error: Phrase?

    var name: StaticString { "ENTER_PAIRING_CODE" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, error: error ?? self.error) { object in
            object.member("name", device.name)
            object.member("fingerprint", device.fingerprint)
            object.member("ownFingerprint", ownFingerprint)
        }
    }

    func answer(in call: Call) throws(Failure) -> SecretBox {
        guard call.name == "SET_PAIRING_CODE" else { throw .badState }
        return try call.secret(.digits(4...4))
    }
}
