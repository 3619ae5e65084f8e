// SPDX-License-Identifier: Apache-2.0
public import Text

/// What an account is asked to sign: WALLET_REQUEST. badged has decoded the actions from the bytes that the card signs.
public struct WalletRequest: ServerMessage, WalletPrompt {
    static let names = ["WALLET_REQUEST"]
    static let errorIsRefusal = false

    /// `authorize`, `sign`, `transfer` or `contract`.
    public var operation: String
    /// The name of the app that asks, as the app says.
    public var dappName: String
    /// The address of its icon.
    public var dappIcon: String?
    /// What the app says about the request.
    public var info: String?
    /// The name of the user at the app, for `authorize`.
    public var userName: String?
    /// The address to which badged sends the result.
    public var callback: String?
    /// The chain, 64 hexadecimal digits; nil for `sign`.
    public var chainID: String?
    public var account: String?
    public var permission: String?
    /// The text that is signed, for `authorize` and `sign`.
    public var text: String?
    /// The actions of the transaction, for `transfer` and `contract`.
    public var actions: [WalletAction] = []
    /// When the transaction expires, `yyyy-MM-ddTHH:mm:ss` in UTC.
    public var expiration: String?
    /// What the card signs, 64 hexadecimal digits.
    public var digest: String
    /// Why badged shows the request again.
    public var error: String?
    public var number: Int?

    /// Whether badged sends what is signed to the chain.
    package var isTransaction: Bool { !actions.isEmpty }

    func isAccepted(by user: any WalletUser) async -> Bool { await user.agree(to: self) }
}

extension WalletRequest {
    init(_ json: JSON) throws(Malformed) {
        let list = try json.required("actions", as: \.array)
        let actions = list.compactMap(WalletAction.init)
        // An action that cannot be read cannot be shown, so it must not be signed.
        guard actions.count == list.count else { throw Malformed("actions") }
        operation = try json.required("operation", as: \.string)
        dappName = try json.required("dapp") { $0["name"]?.string }
        dappIcon = json["dapp"]?["icon"]?.string
        info = json["info"]?.string
        userName = json["userName"]?.string
        callback = json["callback"]?.string
        chainID = json["chainId"]?.string
        account = json["account"]?.string
        permission = json["permission"]?.string
        text = json["text"]?.string
        self.actions = actions
        expiration = json["expiration"]?.string
        digest = try json.required("digest", as: \.string)
        error = json["error"]?.string
        number = json["question"]?.int
    }
}

/// An action of a transaction.
public struct WalletAction: Sendable, Equatable {
    /// The account of the contract, such as `eosio.token`.
    public var account: String
    /// The name of the action, such as `transfer`.
    public var name: String
    /// Who authorises the action, such as `alice@active`. Empty in a command: badged adds the account of the request.
    public var authorization: [String]
    /// The arguments: an object.
    public var data: JSON
    /// What the app says about the action.
    public var info: String?

    public init(account: String, name: String, authorization: [String] = [], data: JSON, info: String? = nil) {
        self.account = account
        self.name = name
        self.authorization = authorization
        self.data = data
        self.info = info
    }

    init?(_ json: JSON) {
        guard let account = json["account"]?.string, let name = json["name"]?.string, let data = json["data"],
            let list = json["authorization"]?.array
        else { return nil }
        let authorization = list.compactMap { entry in
            entry["actor"]?.string.flatMap { actor in entry["permission"]?.string.map { "\(actor)@\($0)" } }
        }
        guard authorization.count == list.count else { return nil }
        self.init(account: account, name: name, authorization: authorization, data: data, info: json["info"]?.string)
    }

    /// The action as a member of WALLET_CONTRACT.
    var json: JSON {
        .object(
            [.init("account", .string(account)), .init("name", .string(name)), .init("data", data)]
                + (info.map { [JSON.Member("info", .string($0))] } ?? [])
        )
    }
}
