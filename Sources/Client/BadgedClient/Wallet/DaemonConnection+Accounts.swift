// SPDX-License-Identifier: Apache-2.0
public import Text

/// The app for which accounts sign: the members of WALLET_INIT.
public struct WalletDapp: Sendable, Equatable {
    /// How badged knows the user of the app.
    public enum Mode: Sendable, Equatable {
        /// The user has an account at the app: `uuid` names the user, `appKey` the app. `authorize` binds an account of
        /// the chain and a card to them, and the other operations need this binding.
        case mykey(appKey: String, uuid: String)
        /// Without a binding: each operation names its account.
        case simple
    }

    public var mode: Mode
    public var name: String
    /// The address of an icon.
    public var icon: String?
    /// The scheme of URLs that open the app. It has no effect.
    public var scheme: String?

    public init(mode: Mode = .simple, name: String, icon: String? = nil, scheme: String? = nil) {
        self.mode = mode
        self.name = name
        self.icon = icon
        self.scheme = scheme
    }

    fileprivate var members: [JSON.Member] {
        let text = { (key: String, value: String?) in value.map { [JSON.Member(key, .string($0))] } ?? [] }
        let mode: [JSON.Member] =
            switch mode {
            case .mykey(let appKey, let uuid): text("mode", "MYKEY") + text("appKey", appKey) + text("UUID", uuid)
            case .simple: text("mode", "MYKEYSimple")
            }
        return mode + text("dappName", name) + text("dappIcon", icon) + text("scheme", scheme)
    }
}

/// What an account signs: a command WALLET_ and its members.
public struct WalletOperation: Sendable, Equatable {
    /// The command, such as `WALLET_SIGN`.
    public var command: String
    public var members: [JSON.Member]

    /// Any operation; for those that this library does not know.
    public init(_ command: String, _ members: [JSON.Member]) { (self.command, self.members) = (command, members) }

    /// What the operations have in common. nil: the member is left out.
    public struct Options: Sendable, Equatable {
        /// What the app says about the request.
        public var info: String?
        /// The address to which badged sends the result.
        public var callbackURL: String?
        /// The number of the order at the app.
        public var orderID: String?
        /// The permission of the account; nil: `active`.
        public var permission: String?

        public init(
            info: String? = nil,
            callbackURL: String? = nil,
            orderID: String? = nil,
            permission: String? = nil
        ) {
            self.info = info
            self.callbackURL = callbackURL
            self.orderID = orderID
            self.permission = permission
        }

        fileprivate var members: [JSON.Member] {
            WalletOperation.texts([
                ("info", info), ("callbackUrl", callbackURL), ("orderId", orderID), ("permission", permission),
            ])
        }
    }

    fileprivate static func texts(_ entries: [(String, String?)]) -> [JSON.Member] {
        entries.compactMap { key, text in text.map { .init(key, .string($0)) } }
    }

    /// WALLET_AUTHORIZE: binds an account and a card to the user of the app.
    public static func authorize(
        account: String,
        userName: String? = nil,
        _ options: Options = Options()
    ) -> WalletOperation {
        WalletOperation("WALLET_AUTHORIZE", texts([("account", account), ("userName", userName)]) + options.members)
    }

    /// WALLET_SIGN: signs a text. `account` nil: the account that is bound, if there is one.
    public static func sign(
        _ message: String,
        account: String? = nil,
        _ options: Options = Options()
    ) -> WalletOperation {
        WalletOperation("WALLET_SIGN", texts([("message", message), ("account", account)]) + options.members)
    }

    /// WALLET_TRANSFER: sends tokens.
    ///
    /// - Parameters:
    ///   - amount: decimal digits, such as `1.3100`.
    ///   - symbol: such as `EOS`.
    ///   - contract: the account of the token's contract.
    ///   - from: nil: the account that is bound.
    ///   - to: who gets the tokens.
    ///   - decimals: to how many decimals `amount` is extended; nil: the digits of `amount` count.
    ///   - memo: at most 256 bytes.
    ///   - options: more members.
    /// - Returns: the operation, for `runWallet`.
    public static func transfer(
        _ amount: String,
        symbol: String,
        contract: String = "eosio.token",
        from: String? = nil,
        to: String,
        decimals: Int? = nil,
        memo: String? = nil,
        _ options: Options = Options()
    ) -> WalletOperation {
        var members = texts([
            ("amount", amount), ("symbol", symbol), ("contractName", contract), ("from", from), ("to", to),
            ("memo", memo),
        ])
        if let decimals { members.append(.init("decimal", .number(String(decimals)))) }
        return WalletOperation("WALLET_TRANSFER", members + options.members)
    }

    /// WALLET_CONTRACT: calls actions of contracts in one transaction. `account` nil: the account that is bound.
    public static func contract(
        _ actions: [WalletAction],
        account: String? = nil,
        _ options: Options = Options()
    ) -> WalletOperation {
        let list = JSON.Member("actions", .array(actions.map(\.json)))
        return WalletOperation("WALLET_CONTRACT", [list] + texts([("account", account)]) + options.members)
    }

    /// WALLET_SIMPLEWALLET: carries out a request of the SimpleWallet protocol: the JSON of a QR code, or the address
    /// of a link. It needs no `initWallet`.
    public static func simpleWallet(
        _ param: String,
        account: String? = nil,
        permission: String? = nil
    ) -> WalletOperation {
        WalletOperation(
            "WALLET_SIMPLEWALLET",
            texts([("param", param), ("account", account), ("permission", permission)])
        )
    }
}

/// The operations with accounts of an Antelope chain. docs/protocol/wallet.md.
extension DaemonConnection {
    /// WALLET_INIT: says for which app the accounts sign. It applies to this connection, until the next call.
    @discardableResult
    public func initWallet(_ dapp: WalletDapp) async throws(ClientError) -> WalletReady {
        try await ask("WALLET_INIT", dapp.members)
    }

    /// WALLET_UNBIND: forgets the account and the card that are bound to the user of the app.
    @discardableResult
    public func unbindWallet() async throws(ClientError) -> WalletUnbound { try await ask("WALLET_UNBIND") }

    /// Runs an operation from its start to its end. A connection runs one workflow at a time. Cancelling the calling
    /// task cancels the operation.
    ///
    /// - Parameters:
    ///   - operation: what the account signs.
    ///   - reader: name of the reader to use; nil: the first with a wallet card.
    ///   - user: agrees, and answers the questions.
    /// - Returns: how the operation ended, also after a refusal or when the user has cancelled it.
    /// - Throws: `accessDenied` and other refusals, `workflowRunning`, the end of the connection, or `cancelled`.
    public func runWallet(
        _ operation: WalletOperation,
        reader: String? = nil,
        user: some WalletUser
    ) async throws(ClientError) -> WalletResult {
        let members = operation.members + (reader.map { [JSON.Member("reader", .string($0))] } ?? [])
        return try await runWorkflow(
            until: WalletOperationMessage.self,
            user,
            start: await self.send(operation.command, members)
        )
    }
}
