// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import HTTP
import Server
import Text

/// What a client asks for, with all its members checked. docs/protocol/wallet.md, MYKEY operations.
struct OperationRequest: Sendable {
    /// `operation` of the messages.
    enum Kind: String, Sendable {
        case authorize, sign, transfer, contract
        /// A request of SimpleWallet whose action is not known.
        case simpleWallet = "simplewallet"
    }

    enum Body: Sendable {
        case authorize
        case sign(message: String)
        case transfer(Transfer)
        case contract([RequestedAction])

        var kind: Kind {
            switch self {
            case .authorize: .authorize
            case .sign: .sign
            case .transfer: .transfer
            case .contract: .contract
            }
        }
    }

    struct Transfer: Sendable {
        var to: AccountName
        /// The decimal number as it was written.
        var amount: String
        var code: SymbolCode
        var contract: AccountName
        /// The number of decimals that the client has named; nil: as many as in `amount`.
        var decimals: Int?
        var memo: String
    }

    struct RequestedAction: Sendable {
        var account: AccountName
        var name: AccountName
        var data: JSON
        var info: String?
    }

    var dapp: DApp
    var body: Body
    var info: String?
    var userName: String?
    /// The account that signs; nil: the bound one.
    var account: AccountName?
    var permission: AccountName?
    var callback: WebAddress?
    /// The link back to the app of SimpleWallet, to which the result is appended.
    var link: String?
    var readerName: String?

    /// The maximum number of bytes of what a client asks to be signed.
    static let maximumMessage = 65_536
    static let maximumText = 4096

    /// Checks that it is known who acts. In mode MYKEY (`needsBinding`) all operations but AUTHORIZE need a binding, and
    /// act for its account.
    func checkAccount(_ binding: Bindings.Binding?, needsBinding: Bool) throws(Failure) {
        guard needsBinding, body.kind != .authorize else {
            if account == nil, body.kind != .sign { throw missingAccount }
            return
        }
        guard let binding else {
            throw Failure(operation: .notBound, "There is no binding for appKey and UUID: send WALLET_AUTHORIZE first")
        }
        if let account, account != binding.account {
            throw Failure(
                operation: .badField,
                "appKey and UUID are bound to another account than \(account): name that account, or send"
                    + " WALLET_UNBIND first"
            )
        }
    }

    /// The failure of an operation that needs an account, if nobody has named one.
    var missingAccount: Failure {
        let name = body.kind == .authorize ? "account" : "the account that signs"
        return Failure(operation: .badField, "\(name) is missing")
    }

    // MARK: Reading

    /// What a request is read from.
    struct Source {
        let dapp: DApp
        let members: Arguments
        let callbacks: CallbackRules
    }

    /// Reads the members that all commands have.
    private init(_ source: Source, _ body: Body) throws(Failure) {
        dapp = source.dapp
        self.body = body
        let (members, callbacks) = (source.members, source.callbacks)
        info = try members.optionalText("info", 0...Self.maximumText)
        _ = try members.optionalText("orderId", 0...Self.maximumText)
        permission = try members.optionalName("permission")
        callback = try callbacks.address(in: members, "callbackUrl")
        // The SDK spells the member in both ways.
        if callback == nil { callback = try callbacks.address(in: members, "callBackUrl") }
        readerName = try members.optionalText("reader", 1...255)
    }

    static func authorize(_ source: Source) throws(Failure) -> OperationRequest {
        var request = try OperationRequest(source, .authorize)
        request.account = try source.members.name("account")
        request.userName = try source.members.optionalText("userName", 0...255)
        return request
    }

    static func sign(_ source: Source) throws(Failure) -> OperationRequest {
        let message = try source.members.text("message", 1...maximumMessage)
        var request = try OperationRequest(source, .sign(message: message))
        request.account = try source.members.optionalName("account")
        return request
    }

    static func transfer(_ source: Source) throws(Failure) -> OperationRequest {
        let decimals = try decimals(source.members, "decimal")
        let transfer = try transfer(source.members, contract: "contractName", decimals, memo: "memo")
        var request = try OperationRequest(source, .transfer(transfer))
        request.account = try source.members.optionalName("from")
        return request
    }

    static func contract(_ source: Source) throws(Failure) -> OperationRequest {
        let actions = try actions(source.members, "actions", data: ["data"])
        var request = try OperationRequest(source, .contract(actions))
        request.account = try source.members.optionalName("account")
        return request
    }

    /// The maximum number of bytes of a memo: contracts of tokens refuse longer ones.
    private static let maximumMemo = 256

    private static let decimalsForm = "a whole number from 0 to \(TokenSymbol.maximumPrecision)"

    /// The number of decimals, as a number or, as apps of the SDK send it, as a text of digits.
    private static func decimals(_ members: Arguments, _ name: StaticString) throws(Failure) -> Int? {
        try members.optional(name, decimalsForm) { value in
            let digits = value.string
            guard digits?.utf8.allSatisfy({ (0x30...0x39).contains($0) }) != false,
                let number = digits.map({ Int($0) }) ?? value.int, (0...TokenSymbol.maximumPrecision).contains(number)
            else { return nil }
            return number
        }
    }

    /// A decimal number as a text or as a number of JSON.
    private static func amount(_ members: Arguments) throws(Failure) -> String {
        try members.required("amount", "a decimal number") { value in
            switch value {
            case .string(let text), .number(let text): text
            default: nil
            }
        }
    }

    /// Reads a transfer; `contract` and `memo` are the names of members. Refuses amounts that no token has. The
    /// precision of the token is known later.
    private static func transfer(
        _ members: Arguments,
        contract: StaticString,
        _ decimals: Int?,
        memo: StaticString
    ) throws(Failure) -> Transfer {
        let symbol = try members.text("symbol", 1...7)
        let transfer = Transfer(
            to: try members.name("to"),
            amount: try amount(members),
            code: try valid("symbol", SymbolCode(symbol)),
            contract: try members.name(contract),
            decimals: decimals,
            memo: try members.optionalText(memo, 0...maximumMemo) ?? ""
        )
        let asset = try valid("amount", Asset(decimal: transfer.amount, code: transfer.code, precision: decimals))
        guard asset.amount > 0 else { throw Failure(operation: .badField, "amount must be more than 0") }
        return transfer
    }

    /// Reads a list of actions; `data` lists the names under which the data of an action may be.
    private static func actions(
        _ members: Arguments,
        _ list: StaticString,
        data names: [StaticString]
    ) throws(Failure) -> [RequestedAction] {
        let form = "an object with account, name and the object data"
        let items = try members.list(list, 1...Transaction.maximumActions, of: form) { item in
            let data = names.lazy.compactMap { Arguments(item)[$0] }.first
            return data?.members == nil ? nil : (Arguments(item), data ?? .null)
        }
        guard let items else { throw members.missing(list, "a list of actions") }
        var actions: [RequestedAction] = []
        for (action, data) in items {
            actions.append(
                RequestedAction(
                    account: try action.name("account"),
                    name: try action.name("name"),
                    data: data,
                    info: try action.optionalText("info", 0...maximumText)
                )
            )
        }
        return actions
    }
}

// MARK: SimpleWallet

extension OperationRequest {
    /// The maximum number of bytes of `param`.
    static let maximumParameter = 65_536
    private static let maximumLink = 2048

    /// The link back to the app in `param`, also if the rest is wrong; nil without a usable one.
    static func link(_ parameter: JSON) -> String? {
        guard let link = parameter["callback"]?.string, (1...maximumLink).contains(link.utf8.count),
            link.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return link
    }

    /// The object in `param`: an object, its text, or `simplewallet://eos.io?param=` and its text.
    static func parameter(_ value: JSON?) throws(Failure) -> JSON {
        let failure = Failure(operation: .badField, "param must be the JSON of SimpleWallet, or its link")
        switch value {
        case .object:
            guard let value, !value.repeatsName else { throw failure }
            return value
        case .string(let text):
            guard text.utf8.count <= maximumParameter else { throw failure }
            var bytes = Array(text.utf8)
            if text.asciiOnly.lowercased().hasPrefix("simplewallet://") {
                let name = "param=".utf8
                guard let query = bytes.split(separator: UInt8(ascii: "?"), maxSplits: 1).dropFirst().first,
                    let item = query.split(separator: UInt8(ascii: "&")).first(where: { $0.starts(with: name) }),
                    let decoded = PercentEncoding.decode(item.dropFirst(name.count))
                else { throw failure }
                bytes = decoded
            }
            guard let json = try? JSON(bytes), json.members != nil, !json.repeatsName else { throw failure }
            return json
        default: throw failure
        }
    }

    /// The operation that `action` of SimpleWallet names.
    static func kind(_ parameter: JSON) -> Kind {
        switch parameter["action"]?.string {
        case "login": .authorize
        case "transfer": .transfer
        case "transaction": .contract
        case "sign": .sign
        default: .simpleWallet
        }
    }

    /// Reads a request of SimpleWallet: the object of the QR code or the link. The command may name account, permission
    /// and reader. `now` is in seconds since 1970, for `expired`.
    static func simpleWallet(
        _ parameter: JSON,
        _ members: Arguments,
        _ callbacks: CallbackRules,
        now: Int
    ) throws(Failure) -> OperationRequest {
        let asked = Arguments(parameter)
        _ = try asked.optionalWord("protocol", [(DApp.Mode.simpleWallet.rawValue, ())])
        if let expired = try asked.optionalNumber("expired", 0...Int(UInt32.max)), expired != 0, expired <= now {
            throw Failure(operation: .badField, "The request has expired: ask the dapp for a new one")
        }
        if asked["callback"] != nil, link(parameter) == nil {
            throw Failure(operation: .badField, "callback must be a link of 1 to \(maximumLink) ASCII characters")
        }
        let dapp = DApp(
            .simpleWallet,
            name: try asked.optionalText("dappName", 0...255) ?? "",
            icon: try asked.optionalText("dappIcon", 0...2048),
            uuid: try asked.optionalText("uuID", 1...255) ?? ""
        )
        let body: Body
        var account = try members.optionalName("account")
        var address: StaticString = "notifyUrl"
        switch kind(parameter) {
        case .authorize:
            _ = try asked.text("uuID", 1...255)
            body = .authorize
            address = "loginUrl"
            _ = try asked.text("loginUrl", 1...2048)
        case .transfer:
            guard let decimals = try decimals(asked, "precision") else {
                throw asked.missing("precision", decimalsForm)
            }
            body = .transfer(try transfer(asked, contract: "contract", decimals, memo: "dappData"))
            let from = try asked.optionalName("from")
            guard account == nil || from == nil || account == from else {
                throw Failure(operation: .badField, "from is not the account of this command")
            }
            account = account ?? from
        case .contract:
            let list: StaticString = asked.has("ContractRequest") ? "ContractRequest" : "actions"
            body = .contract(try actions(asked, list, data: ["data", "TransferDataRequest"]))
        case .sign: body = .sign(message: try asked.text("message", 1...maximumMessage))
        case .simpleWallet:
            throw asked.wrong("action", "login, transfer, transaction or sign")
        }
        var request = try OperationRequest(Source(dapp: dapp, members: members, callbacks: callbacks), body)
        request.account = account
        if let words = try asked.optionalText("desc", 0...maximumText) { request.info = words }
        if let words = try asked.optionalText("loginMemo", 0...maximumText) { request.info = words }
        request.callback = try callbacks.address(in: asked, address)
        request.link = link(parameter)
        return request
    }
}

/// Which addresses may get the POST of a callback.
package struct CallbackRules: Sendable {
    /// `[wallet] http_callbacks`: whether http is allowed to this computer.
    var allowsLoopbackHTTP: Bool

    /// Reads the address in a member; nil if it is missing or empty.
    func address(in members: Arguments, _ name: StaticString) throws(Failure) -> WebAddress? {
        guard let text = try members.optionalText(name, 0...2048), !text.isEmpty else { return nil }
        guard let address = WebAddress(text) else { throw members.wrong(name, "an https address") }
        guard address.isSecure || allowsLoopbackHTTP && address.isConfidential else {
            throw members.wrong(
                name,
                "an https address; http is for this computer only, and needs [wallet] http_callbacks = yes"
            )
        }
        return address
    }
}

/// The text of a QR code or a link of SimpleWallet, which WALLET_SIMPLEWALLET accepts.
package struct SimpleWalletText {
    /// `authorize`, `transfer`, `contract` or `sign`.
    package let operation: String

    /// Reads a text; nil if it is refused. `now` is in seconds since 1970.
    package init?(_ text: String, now: Int) {
        let rules = CallbackRules(allowsLoopbackHTTP: false)
        let members = Arguments(.object([]))
        guard let parameter = try? OperationRequest.parameter(.string(text)),
            let request = try? OperationRequest.simpleWallet(parameter, members, rules, now: now)
        else { return nil }
        operation = request.body.kind.rawValue
    }
}
