// SPDX-License-Identifier: Apache-2.0
public import Text

/// The server of the app is asked to register the device: REGISTER_DEVICE.
public struct DeviceRegistration: ServerMessage, NamedMessage {
    static let names = ["REGISTER_DEVICE"]
    static let errorIsRefusal = false

    public var userID: String
    /// `address`, `api_signer_address`, `updated_timestamp` and `status` of the device.
    public var apiParams: JSON
    /// Why badged did not accept the last answer.
    public var error: String?
    public var number: Int?

    public var refusal: ClientError? { error.map(ClientError.refused) }

    /// The address of the device key, in the form of EIP-55.
    public var address: String? { apiParams["address"]?.string }

    init(_ json: JSON) throws(Malformed) {
        userID = json["userId"]?.string ?? ""
        apiParams = try json.required("apiParams") { $0.members == nil ? nil : $0 }
        error = json["error"]?.string
        number = json["question"]?.int
    }
}

extension DeviceRegistration: Question {
    func answer(by user: any WalletUser, after _: Submission?) async -> Answer? {
        await user.register(self).map { Answer(command: "DEVICE_REGISTERED", members: [.init("apiResponse", $0)]) }
    }
}

/// The user is asked to look at what will be signed: VERIFY_DATA.
public struct DataToVerify: ServerMessage, WalletPrompt {
    static let names = ["VERIFY_DATA"]
    static let consent = "DATA_VERIFIED"

    public var context: FlowContext
    public var entity: FlowEntity
    /// What the card signs; nil when nothing is signed.
    public var signing: SigningData?
    public var number: Int?

    func isAccepted(by user: any WalletUser) async -> Bool { await user.verify(self) }
}

extension DataToVerify {
    init(_ json: JSON) throws(Malformed) {
        var signing: SigningData?
        if let member = json["signing"], member != .null {
            signing = SigningData(member)
            if signing == nil { throw Malformed("signing") }
        }
        context = try json.required("workflowContext", as: FlowContext.init)
        entity = try json.required("contextEntity", as: FlowEntity.init)
        self.signing = signing
        number = json["question"]?.int
    }
}

/// What a card signs: `signing` of VERIFY_DATA. badged has computed the digest itself.
public struct SigningData: Sendable, Equatable {
    public enum Content: Sendable, Equatable {
        /// The text of a signed message of Ethereum, EIP-191.
        case message(String)
        /// The object of EIP-712.
        case typedData(JSON)
        /// Bytes as `0x` and hexadecimal digits. badged does not know what they mean.
        case preimage(String)
    }

    /// Such as `EIP-191`.
    public var standard: String
    /// 64 hexadecimal digits.
    public var digest: String
    public var content: Content
    /// The names of the members of the entity that are shown and not signed: the app says them.
    public var notSigned: [String] = []
}

extension SigningData {
    init?(_ json: JSON) {
        guard let standard = json["standard"]?.string, let digest = json["digest"]?.string else { return nil }
        let content: Content
        if let text = json["message"]?.string {
            content = .message(text)
        } else if let data = json["typedData"], data.members != nil {
            content = .typedData(data)
        } else if let bytes = json["preimage"]?.string {
            content = .preimage(bytes)
        } else {
            return nil
        }
        self.init(standard: standard, digest: digest, content: content, notSigned: json["notSigned"]?.strings ?? [])
    }
}

/// The words of a new wallet, shown once: SHOW_PAPER_WALLET.
public struct PaperWallet: ServerMessage, WalletPrompt, SecretMessage {
    static let names = ["SHOW_PAPER_WALLET"]

    public var userID: String
    public var mnemonics: [String]
    public var number: Int?

    func isAccepted(by user: any WalletUser) async -> Bool { await user.show(self) }
}

extension PaperWallet {
    init(_ json: JSON) throws(Malformed) {
        userID = json["userId"]?.string ?? ""
        mnemonics = try json.required("mnemonics", as: \.strings)
        number = json["question"]?.int
    }
}

/// A question for words of a wallet: ENTER_WORDS.
public struct WordsQuestion: ServerMessage, NamedMessage {
    static let names = ["ENTER_WORDS"]
    static let errorIsRefusal = false

    public enum Wanted: Sendable, Equatable {
        /// The words at these positions, which count from 1, in this order.
        case positions([Int])
        /// All words of a wallet, so many.
        case all(Int)
    }

    public var userID: String
    public var wanted: Wanted
    /// Why badged did not accept the last words.
    public var error: String?
    public var number: Int?

    public var refusal: ClientError? { error.map(ClientError.refused) }
}

extension WordsQuestion {
    init(_ json: JSON) throws(Malformed) {
        let wanted: Wanted
        if let positions = json["positions"]?.array {
            wanted = .positions(positions.compactMap(\.int))
        } else {
            wanted = .all(try json.required("count", as: \.int))
        }
        userID = json["userId"]?.string ?? ""
        self.wanted = wanted
        error = json["error"]?.string
        number = json["question"]?.int
    }
}

extension WordsQuestion: Question {
    func answer(by user: any WalletUser, after _: Submission?) async -> Answer? {
        await user.words(self).map { Answer(command: "SET_WORDS", value: $0) }
    }
}

/// A question for the passphrase that belongs to the words of a wallet: ENTER_PASSPHRASE.
public struct PassphraseQuestion: ServerMessage, NamedMessage {
    static let names = ["ENTER_PASSPHRASE"]
    static let errorIsRefusal = false

    public var userID: String
    /// Why badged did not accept the last passphrase.
    public var error: String?
    public var number: Int?

    public var refusal: ClientError? { error.map(ClientError.refused) }
}

extension PassphraseQuestion {
    init(_ json: JSON) {
        userID = json["userId"]?.string ?? ""
        error = json["error"]?.string
        number = json["question"]?.int
    }
}

extension PassphraseQuestion: Question {
    func answer(by user: any WalletUser, after _: Submission?) async -> Answer? {
        await user.passphrase(self).map { Answer(command: "SET_PASSPHRASE", value: $0) }
    }
}

/// The PUK that badged has drawn for a new card, shown once: SHOW_PUK.
public struct NewPUK: ServerMessage, WalletPrompt, SecretMessage {
    static let names = ["SHOW_PUK"]

    public var userID: String
    /// 12 digits.
    public var puk: String
    public var number: Int?

    func isAccepted(by user: any WalletUser) async -> Bool { await user.show(self) }
}

extension NewPUK {
    init(_ json: JSON) throws(Malformed) {
        userID = json["userId"]?.string ?? ""
        puk = try json.required("puk", as: \.string)
        number = json["question"]?.int
    }
}

/// The private key of a new session, shown once: SHOW_SESSION_KEY.
public struct SessionKey: ServerMessage, WalletPrompt, SecretMessage {
    static let names = ["SHOW_SESSION_KEY"]

    public var userID: String
    public var address: String
    /// 64 hexadecimal digits.
    public var privateKey: String
    public var number: Int?

    func isAccepted(by user: any WalletUser) async -> Bool { await user.keep(self) }
}

extension SessionKey {
    init(_ json: JSON) throws(Malformed) {
        userID = json["userId"]?.string ?? ""
        address = try json.required("address", as: \.string)
        privateKey = try json.required("privateKey", as: \.string)
        number = json["question"]?.int
    }
}
