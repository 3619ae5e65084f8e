// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import ReadersRemote
import Secrets
import Server
import Text
import Wire

/// Asks for the four digits that the other device shows.
struct PairingCodePrompt: Prompt {
    typealias Answer = SecretBox

    let device: RemoteDevice
    /// The own fingerprint, which the other device may show.
    let ownFingerprint: String
    /// What was wrong with the last code.
    let error: String?

    var name: String { EnterPairingCodeMessage.name.description }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        EnterPairingCodeMessage(device: device, own: ownFingerprint, number: number, error: error ?? self.error)
    }

    func answer(in call: Call) throws(Failure) -> SecretBox {
        guard call.name == "SET_PAIRING_CODE" else { throw .badState }
        return try call.secret(.digits(4...4))
    }
}

struct EnterPairingCodeMessage: Message {
    static let name: StaticString = "ENTER_PAIRING_CODE"
    let device: RemoteDevice
    let own: String
    let number: Int
    let error: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("question", number)
        object.member("name", device.name)
        object.member("fingerprint", device.fingerprint)
        object.member("ownFingerprint", own)
    }
}
