// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import HDWallet
import Secp256k1
import Secrets
import Server
import Text
import Wire

/// REGISTER_DEVICE hands the device to the app, which registers it at its own server. DEVICE_REGISTERED answers.
struct RegisterDevicePrompt: Prompt {
    /// `apiResponse`
    typealias Answer = JSON

    let parameters: [JSON.Member]
    let userID: String

    static let commands = [CommandSpec(answering: "DEVICE_REGISTERED")]
    /// The maximum number of bytes of `apiResponse`.
    static let maximumCount = 16_384

    var name: String { RegisterDeviceMessage.name.description }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        RegisterDeviceMessage(parameters: parameters, userID: userID, question: number, error: error)
    }

    func answer(in call: Call) throws(Failure) -> JSON {
        guard call.name == "DEVICE_REGISTERED" else { throw .badState }
        let form = "an object of at most \(Self.maximumCount) bytes"
        return try call.arguments.required("apiResponse", form) { value in
            value.members == nil || value.bytes.count > Self.maximumCount ? nil : value
        }
    }
}

struct RegisterDeviceMessage: Message {
    static let name: StaticString = "REGISTER_DEVICE"
    let parameters: [JSON.Member]
    let userID: String
    let question: Int
    let error: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("userId", userID)
        object.member("apiParams", .object(parameters))
        object.member("question", question)
    }
}

/// VERIFY_DATA shows what will be signed. DATA_VERIFIED answers.
struct VerifyDataPrompt: AcknowledgedPrompt {
    let context: WorkflowContext
    let entity: ContextEntity
    let signing: Signing
    /// The card that will sign, if it is held already.
    var lease: CardLease?

    static let acknowledgement = "DATA_VERIFIED"
    static let commands = [CommandSpec(answering: acknowledgement)]

    var name: String { VerifyDataMessage.name.description }
    var isCurrent: Bool { lease?.isCurrent ?? true }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        VerifyDataMessage(context: context, entity: entity, signing: signing, question: number)
    }
}

struct VerifyDataMessage: Message {
    static let name: StaticString = "VERIFY_DATA"
    let context: WorkflowContext
    let entity: ContextEntity
    let signing: Signing
    let question: Int

    func write(to object: inout JSONWriter, _ level: APILevel) {
        context.write(to: &object)
        entity.write(to: &object)
        object.object("signing") { signing.write(to: &$0) }
        object.member("question", question)
    }
}

/// SHOW_SESSION_KEY shows the private key of a new session, once. ACCEPT answers.
struct SessionKeyPrompt: AcknowledgedPrompt {
    let key: SessionKey
    let userID: String

    var name: String { SessionKeyMessage.name.description }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        SessionKeyMessage(key: key, userID: userID, question: number)
    }
}

/// The key of a session during its workflow. It is wiped with the last reference.
final class SessionKey: Sendable {
    let key: PrivateKey

    init(_ key: consuming PrivateKey) { self.key = key }

    var address: EthereumAddress { EthereumAddress(key.publicKey) }
}

struct SessionKeyMessage: Message {
    static let name: StaticString = "SHOW_SESSION_KEY"
    static let isSecret = true
    let key: SessionKey
    let userID: String
    let question: Int

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("userId", userID)
        object.member("address", key.address.description)
        object.member("question", question)
        object.key("privateKey")
        key.key.scalar.withBytes { object.hex($0) }
    }
}
