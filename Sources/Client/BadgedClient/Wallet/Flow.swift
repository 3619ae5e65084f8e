// SPDX-License-Identifier: Apache-2.0
public import Text

/// The name and the number of a workflow with a wallet card: `workflowContext`.
public struct FlowContext: Sendable, Equatable {
    /// A UUID; nil when the workflow was refused.
    public var workflowID: String?
    /// Such as `SETUP_DEVICE`. After a QR code it is the action of the code.
    public var workflowType: String
}

extension FlowContext {
    init?(_ json: JSON) {
        guard let type = json["workflowType"]?.string else { return nil }
        self.init(workflowID: json["workflowId"]?.string, workflowType: type)
    }
}

/// What a workflow with a wallet card is about: `contextEntity`. docs/protocol/wallet.md, Entities.
public struct FlowEntity: Sendable, Equatable {
    /// Such as `device` and `session`.
    public var type: String
    /// The members of the entity.
    public var members: JSON

    public init(type: String, members: JSON) { (self.type, self.members) = (type, members) }

    init?(_ json: JSON) {
        guard let type = json["entityType"]?.string, let entity = json["entity"] else { return nil }
        self.init(type: type, members: entity)
    }

    /// A member that is a string.
    public func text(_ name: String) -> String? { members[name]?.string }
}

/// Why a workflow with a wallet card has failed or was cancelled.
public struct FlowError: Error, Sendable, Equatable {
    /// A name of docs/protocol/wallet.md, Errors, such as `USER_CANCELED`.
    public var code: String
    /// The step at which the card has failed; empty in other cases.
    public var internalCode: String
    /// What has happened and what to do, in English.
    public var message: String
    /// What the workflow has changed on the card, or may have changed, although it failed; a part of `message`.
    public var change: String?

    public init(code: String, internalCode: String = "", message: String = "", change: String? = nil) {
        self.code = code
        self.internalCode = internalCode
        self.message = message
        self.change = change
    }

    init?(_ json: JSON) {
        guard let code = json["code"]?.string else { return nil }
        self.code = code
        internalCode = json["internalCode"]?.string ?? ""
        message = json["message"]?.string ?? ""
        change = json["change"]?.string
    }
}

/// How a workflow with a wallet card ended.
public struct FlowResult: Sendable, Equatable {
    public var context: FlowContext
    /// What the workflow has made or changed; nil after a failure.
    public var entity: FlowEntity?
    /// nil after success.
    public var error: FlowError?

    public var isComplete: Bool { error == nil }
}

/// A workflow with a wallet card has begun or ended: FLOW_STARTED, FLOW_COMPLETE, FLOW_INTERRUPTED.
public struct FlowMessage: ServerMessage, WorkflowMessage {
    static let names = ["FLOW_STARTED", "FLOW_COMPLETE", "FLOW_INTERRUPTED"]
    static let errorIsRefusal = false

    public var context: FlowContext
    /// How the workflow ended; nil when it has just begun.
    public var outcome: FlowResult?

    public init(context: FlowContext, outcome: FlowResult? = nil) { (self.context, self.outcome) = (context, outcome) }

    init(_ json: JSON) throws(Malformed) {
        context = try json.required("workflowContext", as: FlowContext.init)
        switch json["msg"]?.string {
        case "FLOW_COMPLETE":
            outcome = FlowResult(context: context, entity: try json.required("contextEntity", as: FlowEntity.init))
        case "FLOW_INTERRUPTED":
            outcome = FlowResult(context: context, error: try json.required("error", as: FlowError.init))
        default: outcome = nil
        }
    }
}

/// The server of the app has registered the device: REQUEST_ACKNOWLEDGED.
public struct RequestAcknowledged: ServerMessage, NamedMessage {
    static let names = ["REQUEST_ACKNOWLEDGED"]

    public var context: FlowContext
    public var entity: FlowEntity

    public init(context: FlowContext, entity: FlowEntity) { (self.context, self.entity) = (context, entity) }

    init(_ json: JSON) throws(Malformed) {
        context = try json.required("workflowContext", as: FlowContext.init)
        entity = try json.required("contextEntity", as: FlowEntity.init)
    }
}

/// A wallet card has accepted the PIN, or the PUK with a new PIN: PIN_VALIDATED.
public struct PINValidated: ServerMessage, SubmissionVerdict {
    static let names = ["PIN_VALIDATED"]

    public var userID: String

    public init(userID: String) { self.userID = userID }

    init(_ json: JSON) { self.init(userID: json["userId"]?.string ?? "") }

    var verdict: LastAnswer { LastAnswer(kind: .pin, outcome: .accepted) }
}

/// A wallet card has refused a PIN or PUK: INVALID_PIN, INVALID_PUK. The next question follows at once.
public struct InvalidValue: ServerMessage, SubmissionVerdict {
    static let names = ["INVALID_PIN", "INVALID_PUK"]

    /// `pin` or `puk`.
    public var kind: SecretKind
    public var userID: String
    /// Tries that the card has left; nil when badged does not report them.
    public var retryCounter: Int?

    var verdict: LastAnswer { LastAnswer(kind: kind, outcome: .wrong) }
}

extension InvalidValue {
    init(_ json: JSON) {
        kind = json["msg"]?.string == "INVALID_PUK" ? .puk : .pin
        userID = json["userId"]?.string ?? ""
        retryCounter = json["retryCounter"]?.int
    }
}

/// The messages of wallet cards.
let walletMessages: [any NamedMessage.Type] = [
    FlowMessage.self, PINValidated.self, InvalidValue.self, DeviceRegistration.self, DataToVerify.self,
    PaperWallet.self, WordsQuestion.self, PassphraseQuestion.self, NewPUK.self, SessionKey.self,
    RequestAcknowledged.self,
    WalletReady.self, WalletUnbound.self, WalletRequest.self, WalletOperationMessage.self,
]
