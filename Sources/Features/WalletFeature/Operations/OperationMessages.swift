// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Cards
import Concurrency
import HTTP
import Server
import Text

/// WALLET_READY: the answer to WALLET_INIT.
struct WalletReadyMessage: Message {
    static let name: StaticString = "WALLET_READY"
    let dapp: DApp
    let chain: ChainID
    let hasNode: Bool
    let binding: Bindings.Binding?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("mode", dapp.mode.rawValue)
        object.member("dappName", dapp.name)
        object.member("chainId", "\(chain)")
        object.member("node", hasNode)
        object.member("account", binding?.account.description)
        object.member("publicKey", binding?.publicKey)
    }
}

/// The last message of each operation, and the answer to a refused command.
struct WalletResultMessage: Message {
    static let name: StaticString = "WALLET_RESULT"
    var kind: OperationRequest.Kind
    var code: OperationCode
    var message: Phrase
    var account: AccountName?
    var publicKey: String?
    var transactionID: [UInt8]?
    var signature: String?
    var callbackError: String?
    /// What has changed, or may have changed, although the operation failed; `message` ends with it.
    var change: Phrase?
    /// The setting of badged.conf that would have helped.
    var setting: String?
    var link: String?

    init(_ kind: OperationRequest.Kind, _ failure: Failure) {
        self.kind = kind
        code = failure.operationCode
        message = failure.operationText
        callbackError = failure["callbackError"]?.string
        change = failure.change
        setting = failure["setting"]?.string
    }

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("operation", kind.rawValue)
        object.member("code", code.rawValue)
        object.member("message", message)
        object.member("account", account?.description)
        object.member("publicKey", publicKey)
        if let transactionID { object.member("txId", Hex.encode(transactionID)) }
        if let signature { object.member("sign", signature) }
        if let callbackError { object.member("callbackError", callbackError) }
        if let change { object.member("change", change) }
        if let setting { object.member("setting", setting) }
        if let link { object.member("callback", returned(link)) }
    }

    /// The link of SimpleWallet with the result: 0 cancelled, 1 done, 2 failed.
    private func returned(_ link: String) -> String {
        let result = code == .cancelled ? 0 : code == .done ? 1 : 2
        let items = "result=\(result)" + (transactionID.map { "&txID=\(Hex.encode($0))" } ?? "")
        // What follows # is no part of the query. RFC 3986, 3.
        let start = link.prefix { $0 != "#" }
        let end = link[start.endIndex...]
        guard start.contains("?") else { return "\(start)?\(items)\(end)" }
        return start.hasSuffix("?") || start.hasSuffix("&") ? "\(start)\(items)\(end)" : "\(start)&\(items)\(end)"
    }
}

/// What the user sees before the card signs.
struct ShownRequest: Sendable {
    /// An action, decoded from its packed bytes.
    struct ShownAction: Sendable {
        let action: AntelopeAction
        let data: JSON
        let info: String?
    }

    let request: OperationRequest
    /// nil if nothing of a chain is signed.
    let chain: ChainID?
    let account: AccountName?
    let permission: AccountName?
    /// What is signed, if it is a text.
    let text: String?
    let actions: [ShownAction]
    let expiration: AntelopeTime?
    /// What the card signs: 32 bytes.
    let digest: [UInt8]
}

/// WALLET_REQUEST shows what will be signed. ACCEPT agrees.
struct WalletRequestPrompt: AcknowledgedPrompt {
    let shown: ShownRequest
    /// Why the request is shown again.
    var error: Phrase?
    /// The card that waits for the answer; nil while there is none.
    var lease: CardLease?

    var name: StaticString { "WALLET_REQUEST" }
    var isCurrent: Bool { lease?.isCurrent ?? true }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, error: error ?? self.error) { object in
            object.member("operation", shown.request.body.kind.rawValue)
            object.object("dapp") { dapp in
                dapp.member("name", shown.request.dapp.name)
                dapp.member("icon", shown.request.dapp.icon)
            }
            object.member("info", shown.request.info)
            object.member("userName", shown.request.userName)
            object.member("callback", shown.request.callback?.text)
            object.member("chainId", shown.chain?.description)
            object.member("account", shown.account?.description)
            object.member("permission", shown.permission?.description)
            object.member("text", shown.text)
            object.array("actions", shown.actions) { array, item in
                array.object { object in
                    object.member("account", "\(item.action.account)")
                    object.member("name", "\(item.action.name)")
                    object.array("authorization", item.action.authorization) { array, level in
                        array.object { object in
                            object.member("actor", "\(level.actor)")
                            object.member("permission", "\(level.permission)")
                        }
                    }
                    object.member("data", item.data)
                    object.member("info", item.info)
                }
            }
            object.member("expiration", shown.expiration?.text(decimals: 0))
            object.member("digest", Hex.encode(shown.digest))
        }
    }
}
