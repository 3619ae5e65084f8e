// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import HDWallet
import Server
import Text

/// REGISTER_DEVICE hands the device to the app, which registers it at its own server. DEVICE_REGISTERED answers.
struct RegisterDevicePrompt: Prompt {
    /// `apiResponse`
    typealias Answer = JSON

    let parameters: [JSON.Member]
    let userID: String

    static let commands = [CommandSpec(answering: "DEVICE_REGISTERED")]
    /// The maximum number of bytes of `apiResponse`.
    static let maximumCount = 16_384

    var name: StaticString { "REGISTER_DEVICE" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, error: error) { object in
            object.member("userId", userID)
            object.member("apiParams", .object(parameters))
        }
    }

    func answer(in call: Call) throws(Failure) -> JSON {
        guard call.name == "DEVICE_REGISTERED" else { throw .badState }
        let form = "an object of at most \(Self.maximumCount) bytes"
        return try call.arguments.required("apiResponse", form) { value in
            value.members == nil || value.bytes.count > Self.maximumCount ? nil : value
        }
    }
}

/// VERIFY_DATA shows what will be signed. DATA_VERIFIED answers.
struct VerifyDataPrompt: AcknowledgedPrompt {
    let context: WorkflowContext
    let entity: ContextEntity
    let signing: Signing
    /// The names of the members of the entity that are signed.
    let signedMembers: [String]
    /// The card that will sign, if it is held already.
    var lease: CardLease?

    static let acknowledgement = "DATA_VERIFIED"
    static let commands = [CommandSpec(answering: acknowledgement)]

    var name: StaticString { "VERIFY_DATA" }
    var isCurrent: Bool { lease?.isCurrent ?? true }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number) { object in
            context.write(to: &object)
            entity.write(to: &object)
            object.object("signing") { object in
                signing.write(to: &object)
                object.member("notSigned", entity.members.map(\.key).filter { !signedMembers.contains($0) })
            }
        }
    }
}

/// SHOW_SESSION_KEY shows the private key of a new session, once. ACCEPT answers.
struct SessionKeyPrompt: AcknowledgedPrompt {
    let key: SessionKey
    let userID: String

    var name: StaticString { "SHOW_SESSION_KEY" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, isSecret: true) { object in
            object.member("userId", userID)
            object.member("address", key.address.description)
            object.key("privateKey")
            key.key.scalar.withBytes { object.hex($0) }
        }
    }
}

/// The key of a session during its workflow. It is wiped with the last reference.
final class SessionKey: Sendable {
    let key: PrivateKey

    init(_ key: consuming PrivateKey) { self.key = key }

    var address: EthereumAddress { EthereumAddress(key.publicKey) }
}
