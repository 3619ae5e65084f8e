// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import HTTP
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
        var info: String?
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

    // MARK: Reading

    /// Reads the members that all commands have.
    private init(_ dapp: DApp, _ body: Body, _ members: Members, _ callbacks: CallbackRules) throws(OperationFailure) {
        (self.dapp, self.body) = (dapp, body)
        info = try members.text("info", 0...Self.maximumText)
        _ = try members.text("orderId", 0...Self.maximumText)
        permission = try members.name("permission")
        callback = try callbacks.address(in: members, "callbackUrl")
        // The SDK spells the member in both ways.
        if callback == nil { callback = try callbacks.address(in: members, "callBackUrl") }
        readerName = try members.text("reader", 1...255)
    }

    static func authorize(
        _ dapp: DApp,
        _ members: Members,
        _ callbacks: CallbackRules
    ) throws(OperationFailure) -> OperationRequest {
        var request = try OperationRequest(dapp, .authorize, members, callbacks)
        request.account = try members.requiredName("account")
        request.userName = try members.text("userName", 0...255)
        return request
    }

    static func sign(
        _ dapp: DApp,
        _ members: Members,
        _ callbacks: CallbackRules
    ) throws(OperationFailure) -> OperationRequest {
        let message = try members.required("message", 1...maximumMessage)
        var request = try OperationRequest(dapp, .sign(message: message), members, callbacks)
        request.account = try members.name("account")
        return request
    }

    static func transfer(
        _ dapp: DApp,
        _ members: Members,
        _ callbacks: CallbackRules
    ) throws(OperationFailure) -> OperationRequest {
        let symbol = try members.required("symbol", 1...7)
        let transfer = Transfer(
            to: try members.requiredName("to"),
            amount: try amount(members),
            code: try valid("symbol") { () throws(AntelopeError) in try SymbolCode(symbol) },
            contract: try members.requiredName("contractName"),
            decimals: try members.int("decimal", 0...TokenSymbol.maximumPrecision),
            memo: try members.text("memo", 0...maximumMemo) ?? "",
            info: nil
        )
        try check(transfer)
        var request = try OperationRequest(dapp, .transfer(transfer), members, callbacks)
        request.account = try members.name("from")
        return request
    }

    static func contract(
        _ dapp: DApp,
        _ members: Members,
        _ callbacks: CallbackRules
    ) throws(OperationFailure) -> OperationRequest {
        guard let items = members["actions"]?.array, (1...Transaction.maximumActions).contains(items.count) else {
            throw OperationFailure(.badField, "actions must be an array of 1 to \(Transaction.maximumActions) actions")
        }
        var actions: [RequestedAction] = []
        for item in items { actions.append(try action(item, data: ["data"])) }
        var request = try OperationRequest(dapp, .contract(actions), members, callbacks)
        request.account = try members.name("account")
        return request
    }

    /// The maximum number of bytes of a memo: contracts of tokens refuse longer ones.
    private static let maximumMemo = 256

    /// A decimal number as a text or as a number of JSON.
    private static func amount(_ members: Members) throws(OperationFailure) -> String {
        switch members["amount"] {
        case .string(let text), .number(let text): return text
        case nil: throw OperationFailure(.badField, "amount is missing")
        default: throw OperationFailure(.badField, "amount must be a decimal number")
        }
    }

    /// Refuses amounts that no token has. The precision of the token is known later.
    private static func check(_ transfer: Transfer) throws(OperationFailure) {
        let asset = try valid("amount") { () throws(AntelopeError) in
            try Asset(decimal: transfer.amount, code: transfer.code, precision: transfer.decimals)
        }
        guard asset.amount > 0 else { throw OperationFailure(.badField, "amount must be more than 0") }
    }

    /// Reads an action; `data` lists the names under which its data may be.
    private static func action(_ item: JSON, data names: [StaticString]) throws(OperationFailure) -> RequestedAction {
        guard item.members != nil else { throw OperationFailure(.badField, "an action must be an object") }
        let members = Members(item)
        let data = names.lazy.compactMap { members[$0] }.first
        guard let data, data.members != nil else {
            throw OperationFailure(.badField, "data of an action must be an object")
        }
        return RequestedAction(
            account: try members.requiredName("account"),
            name: try members.requiredName("name"),
            data: data,
            info: try members.text("info", 0...maximumText)
        )
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
    static func parameter(_ value: JSON?) throws(OperationFailure) -> JSON {
        let failure = OperationFailure(.badField, "param must be the JSON of SimpleWallet, or its link")
        switch value {
        case .object: return value ?? .null
        case .string(let text):
            guard text.utf8.count <= maximumParameter else { throw failure }
            var bytes = Array(text.utf8)
            if text.lowercased().hasPrefix("simplewallet://") {
                guard let query = text.split(separator: "?", maxSplits: 1).dropFirst().first,
                    let item = query.split(separator: "&").first(where: { $0.hasPrefix("param=") }),
                    let decoded = percentDecoded(item.dropFirst("param=".count))
                else { throw failure }
                bytes = decoded
            }
            guard let json = try? JSON(bytes), json.members != nil else { throw failure }
            return json
        default: throw failure
        }
    }

    private static func percentDecoded(_ text: Substring) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(Hex.value), let low = rest.popFirst().flatMap(Hex.value) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
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
        _ members: Members,
        _ callbacks: CallbackRules,
        now: Int
    ) throws(OperationFailure) -> OperationRequest {
        let asked = Members(parameter)
        if let name = asked["protocol"], name.string != DApp.Mode.simpleWallet.rawValue {
            throw OperationFailure(.badField, "protocol must be SimpleWallet")
        }
        if let expired = try asked.int("expired", 0...Int(UInt32.max)), expired != 0, expired <= now {
            throw OperationFailure(.badField, "The request has expired: ask the dapp for a new one")
        }
        if asked["callback"] != nil, link(parameter) == nil {
            throw OperationFailure(.badField, "callback must be a link of 1 to \(maximumLink) ASCII characters")
        }
        let dapp = DApp(
            .simpleWallet,
            name: try asked.text("dappName", 0...255) ?? "",
            icon: try asked.text("dappIcon", 0...2048),
            uuid: try asked.text("uuID", 1...255) ?? ""
        )
        let body: Body
        var account = try members.name("account")
        var address: StaticString = "notifyUrl"
        switch kind(parameter) {
        case .authorize:
            guard !dapp.uuid.isEmpty else { throw OperationFailure(.badField, "uuID is missing") }
            (body, address) = (.authorize, "loginUrl")
            guard asked["loginUrl"] != nil else { throw OperationFailure(.badField, "loginUrl is missing") }
        case .transfer:
            let symbol = try asked.required("symbol", 1...7)
            let transfer = Transfer(
                to: try asked.requiredName("to"),
                amount: try amount(asked),
                code: try valid("symbol") { () throws(AntelopeError) in try SymbolCode(symbol) },
                contract: try asked.requiredName("contract"),
                decimals: try asked.int("precision", 0...TokenSymbol.maximumPrecision),
                memo: try asked.text("dappData", 0...maximumMemo) ?? "",
                info: nil
            )
            guard transfer.decimals != nil else { throw OperationFailure(.badField, "precision is missing") }
            try check(transfer)
            body = .transfer(transfer)
            let from = try asked.name("from")
            guard account == nil || from == nil || account == from else {
                throw OperationFailure(.badField, "from is not the account of this command")
            }
            account = account ?? from
        case .contract:
            guard let items = asked["ContractRequest"]?.array ?? asked["actions"]?.array,
                (1...Transaction.maximumActions).contains(items.count)
            else { throw OperationFailure(.badField, "ContractRequest must be an array of actions") }
            var actions: [RequestedAction] = []
            for item in items { actions.append(try action(item, data: ["data", "TransferDataRequest"])) }
            body = .contract(actions)
        case .sign: body = .sign(message: try asked.required("message", 1...maximumMessage))
        case .simpleWallet:
            throw OperationFailure(.badField, "action must be login, transfer, transaction or sign")
        }
        var request = try OperationRequest(dapp, body, members, callbacks)
        request.account = account
        if let words = try asked.text("desc", 0...maximumText) { request.info = words }
        if let words = try asked.text("loginMemo", 0...maximumText) { request.info = words }
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
    func address(in members: Members, _ name: StaticString) throws(OperationFailure) -> WebAddress? {
        guard let text = try members.text(name, 0...2048), !text.isEmpty else { return nil }
        guard let address = WebAddress(text) else {
            throw OperationFailure(.badField, "\(name) is not an https address")
        }
        guard address.isSecure || allowsLoopbackHTTP && Self.isLoopback(address.origin.host) else {
            throw OperationFailure(
                .badField,
                "\(name) must be an https address; http is for this computer only, see [wallet] http_callbacks"
            )
        }
        return address
    }

    /// Whether a host is this computer.
    package static func isLoopback(_ host: String) -> Bool {
        if host == "localhost" || host == "::1" { return true }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return parts.count == 4 && parts.first == 127 && !parts.contains(nil)
    }
}
