// SPDX-License-Identifier: Apache-2.0
import Text

/// An operation with an account has begun or ended: WALLET_STARTED, WALLET_RESULT.
public struct WalletOperationMessage: ServerMessage, WorkflowMessage {
    static let names = ["WALLET_STARTED", "WALLET_RESULT"]

    /// `authorize`, `sign`, `transfer` or `contract`.
    public var operation: String
    /// How the operation ended; nil when it has just begun.
    public var outcome: WalletResult?
}

extension WalletOperationMessage {
    init(_ json: JSON) throws(Malformed) {
        operation = try json.required("operation", as: \.string)
        if json["msg"]?.string == "WALLET_RESULT" { outcome = try WalletResult(json) }
    }
}

/// How an operation with an account ended: WALLET_RESULT.
public struct WalletResult: Sendable, Equatable {
    public var operation: String
    /// 0: the user has cancelled; 1: done; 2 and more: failed. docs/protocol/wallet.md has the table.
    public var code: Int
    /// What has happened, in English.
    public var message: String
    public var account: String?
    /// The key of the card, such as `PUB_K1_...`.
    public var publicKey: String?
    /// The transaction, 64 hexadecimal digits. Also after a failure whose outcome is not known: then look at the chain
    /// before you repeat anything.
    public var transactionID: String?
    /// The signature of `authorize` and `sign`, such as `SIG_K1_...`.
    public var signature: String?
    /// Why the result could not be sent to the address of the app.
    public var callbackError: String?
    /// What has changed, or may have changed, although the operation failed; `message` ends with it.
    public var change: String?
    /// The setting of badged.conf that would have helped, such as `[wallet] node`.
    public var setting: String?
    /// The callback address that an app of SimpleWallet has requested.
    public var callback: String?

    public init(
        operation: String,
        code: Int,
        message: String = "",
        account: String? = nil,
        publicKey: String? = nil,
        transactionID: String? = nil,
        signature: String? = nil,
        callbackError: String? = nil,
        callback: String? = nil
    ) {
        self.operation = operation
        self.code = code
        self.message = message
        self.account = account
        self.publicKey = publicKey
        self.transactionID = transactionID
        self.signature = signature
        self.callbackError = callbackError
        self.callback = callback
    }

    init(_ json: JSON) throws(Malformed) {
        operation = try json.required("operation", as: \.string)
        code = try json.required("code", as: \.int)
        message = json["message"]?.string ?? ""
        account = json["account"]?.string
        publicKey = json["publicKey"]?.string
        transactionID = json["txId"]?.string
        signature = json["sign"]?.string
        callbackError = json["callbackError"]?.string
        change = json["change"]?.string
        setting = json["setting"]?.string
        callback = json["callback"]?.string
    }

    public var isSuccess: Bool { code == 1 }
    public var isCancelled: Bool { code == 0 }
}

/// badged knows the app: WALLET_READY.
public struct WalletReady: ServerMessage, NamedMessage {
    static let names = ["WALLET_READY"]

    /// `MYKEY` or `MYKEYSimple`.
    public var mode: String
    public var dappName: String
    /// The chain that badged is configured for, 64 hexadecimal digits.
    public var chainID: String?
    /// Whether badged has a node of the chain. Without one it can only sign texts.
    public var hasNode = false
    /// The account that is bound to the user of the app; nil: none.
    public var account: String?
    /// The key of the card that is bound; nil: none.
    public var publicKey: String?
}

extension WalletReady {
    init(_ json: JSON) throws(Malformed) {
        mode = try json.required("mode", as: \.string)
        dappName = json["dappName"]?.string ?? ""
        chainID = json["chainId"]?.string
        hasNode = json["node"]?.bool ?? false
        account = json["account"]?.string
        publicKey = json["publicKey"]?.string
    }
}

/// badged has forgotten the binding of an app: WALLET_UNBOUND.
public struct WalletUnbound: ServerMessage, NamedMessage {
    static let names = ["WALLET_UNBOUND"]

    /// The account that was bound; nil: none was.
    public var account: String?

    public init(account: String? = nil) { self.account = account }

    init(_ json: JSON) { self.init(account: json["account"]?.string) }
}
