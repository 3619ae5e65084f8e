// SPDX-License-Identifier: Apache-2.0
public import BadgedClient
public import Dispatch
public import FoundationEssentials
import Synchronization
import Text

/// Lets accounts of an Antelope chain sign with a wallet card. The names are those of the MYKEY SDK.
///
/// Every call returns at once. Each operation runs on a connection of its own and calls one closure of its response.
public final class MYKEYWallet: Sendable {
    /// The wallet of this process. It uses the default socket, calls back on the main queue, and asks on the terminal.
    public static let shared = MYKEYWallet()

    private struct State {
        var dapp: WalletDapp?
        var user: any WalletUser
        /// The addresses with which ended operations call the app back.
        var callbacks: Set<String> = []
    }

    private let socketPath: String?
    private let queue: DispatchQueue
    private let insertion: VirtualInsertion?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - socketPath: the socket of badged; nil: the default of this system.
    ///   - callbackQueue: the serial queue on which closures run. The main queue needs `dispatchMain()` or a run loop; an app
    ///     without these passes another queue.
    ///   - user: shows the requests and gives the PIN; nil: asks on the terminal of the process.
    ///   - virtualCard: a card for the virtual reader, which is inserted when a card is needed; for tests.
    public init(
        socketPath: String? = nil,
        callbackQueue: DispatchQueue = .main,
        user: (any WalletUser)? = nil,
        virtualCard: VirtualCardInsertion? = nil
    ) {
        self.socketPath = socketPath
        queue = callbackQueue
        insertion = virtualCard.map(VirtualInsertion.init)
        state = Mutex(State(user: user ?? TerminalWalletUser()))
    }

    /// Who shows the requests and gives the PIN. MYKEY had an app of its own for this.
    public var user: any WalletUser {
        get { state.withLock { $0.user } }
        set { state.withLock { $0.user = newValue } }
    }

    // MARK: The app

    /// Says for which app and user the accounts sign.
    public func initWallet(initData: InitRequest) {
        let uuid = initData.UUID?.uuidString ?? ""
        let dapp = WalletDapp(
            mode: .mykey(appKey: initData.appKey, uuid: uuid),
            name: initData.dappName,
            icon: initData.dappIcon.nonEmpty,
            scheme: initData.scheme.nonEmpty
        )
        state.withLock { $0.dapp = dapp }
    }

    /// Says for which app the accounts sign, without an account of the user at the app.
    public func initWalletSimple(initSimpleData: InitSimpleRequest) {
        let dapp = WalletDapp(
            mode: .simple,
            name: initSimpleData.dappName,
            icon: initSimpleData.dappIcon.nonEmpty,
            scheme: initSimpleData.scheme.nonEmpty
        )
        state.withLock { $0.dapp = dapp }
    }

    private var dapp: WalletDapp? { state.withLock { $0.dapp } }

    public var appKey: String { if case .mykey(let key, _) = dapp?.mode { key } else { "" } }
    public var uuid: String { if case .mykey(_, let uuid) = dapp?.mode { uuid } else { "" } }
    public var dappName: String { dapp?.name ?? "" }
    public var dappIcon: String { dapp?.icon ?? "" }
    /// Empty before `initWallet` and `initWalletSimple`.
    public var scheme: String { dapp?.scheme ?? "" }
    /// `MYKEY` or `MYKEYSimple`; empty before the init.
    public var `protocol`: String {
        switch dapp?.mode {
        case .mykey: "MYKEY"
        case .simple: "MYKEYSimple"
        case nil: ""
        }
    }

    // MARK: Operations

    /// Binds an account and a card to the user of the app.
    public func authorize(authorizeRequest request: AuthorizeRequest, response: MYKEYApiResponse) {
        let account = request.account.nonEmpty ?? request.userName
        run(.authorize(account: account, userName: request.userName.nonEmpty, request.options()), response)
    }

    /// Sends tokens.
    public func transfer(transferRequest request: TransferRequest, response: MYKEYApiResponse) {
        let decimals = request.decimal.decimalText
        guard decimals.isEmpty || Int(decimals) != nil else {
            return fail(.illegalParameter, "decimal is not a number: \(decimals)", response)
        }
        let operation = WalletOperation.transfer(
            request.amount.decimalText,
            symbol: request.symbol,
            contract: request.contractName.nonEmpty ?? "eosio.token",
            from: request.from.nonEmpty,
            to: request.to,
            decimals: Int(decimals).flatMap { $0 == 0 ? nil : $0 },
            memo: request.memo.nonEmpty,
            request.options(orderID: request.orderId)
        )
        run(operation, response)
    }

    /// Calls actions of contracts in one transaction.
    public func contract(contractRequest request: ContractRequest, response: MYKEYApiResponse) {
        var actions: [WalletAction] = []
        for action in request.actions {
            guard let data = action.arguments else {
                return fail(.illegalParameter, "the data of \(action.name) is not an object", response)
            }
            actions.append(
                WalletAction(account: action.account, name: action.name, data: data, info: action.info.nonEmpty)
            )
        }
        let options = request.options(orderID: request.orderId)
        run(.contract(actions, account: request.account.nonEmpty, options), response)
    }

    /// Signs a text.
    public func sign(signRequest request: SignRequest, response: MYKEYApiResponse) {
        run(.sign(request.message, account: request.account.nonEmpty, request.options()), response)
    }

    /// Carries out a request of the SimpleWallet protocol: the JSON of a QR code, or the address of a link. It needs no
    /// init.
    ///
    /// - Parameters:
    ///   - param: the JSON, or an address such as `simplewallet://eos.io?param=...`.
    ///   - account: who logs in or signs.
    ///   - response: receives the end.
    public func simpleWallet(param: String, account: String? = nil, response: MYKEYApiResponse) {
        run(.simpleWallet(param, account: account), response)
    }

    /// Takes a URL with which a wallet calls the app back. The result of an operation has already come over the socket,
    /// so the URL changes nothing.
    ///
    /// - Returns: whether the URL belongs to this wallet: it has the `scheme` of the app, or an ended operation has
    ///   named it as `callback`. Each `callback` counts once.
    @discardableResult
    public func handleUrl(url: URL) -> Bool {
        state.withLock { state in
            if state.callbacks.remove(url.absoluteString) != nil { return true }
            guard let own = state.dapp?.scheme, let scheme = url.scheme else { return false }
            return own.lowercased() == scheme.lowercased()
        }
    }

    // MARK: One operation

    private func run(_ operation: WalletOperation, _ response: MYKEYApiResponse) {
        let response = Response(response)
        let (dapp, user) = state.withLock { ($0.dapp, $0.user) }
        let path = socketPath ?? SocketPath.standard
        Task {
            let end: WalletResult
            do throws(ClientError) {
                end = try await perform(operation, dapp, user, at: path)
            } catch {
                end = WalletResult(operation: "", code: Self.code(of: error).rawValue, message: error.sentence)
            }
            if let callback = end.callback { state.withLock { _ = $0.callbacks.insert(callback) } }
            finish(end, response)
        }
    }

    private func perform(
        _ operation: WalletOperation,
        _ dapp: WalletDapp?,
        _ user: any WalletUser,
        at path: String
    ) async throws(ClientError) -> WalletResult {
        let badged = try await DaemonConnection.connect(to: path, keepsEvents: false)
        defer { badged.close() }
        if let dapp {
            do throws(ClientError) {
                try await badged.initWallet(dapp)
            } catch {
                guard case .refused(let text) = error else { throw error }
                return WalletResult(operation: "", code: ErrorCode.illegalParameter.rawValue, message: text)
            }
        }
        let signer = InsertingUser(user, badged, insertion)
        do throws(ClientError) {
            return try await badged.runWallet(operation, user: signer)
        } catch {
            guard signer.hasAgreedToTransaction else { throw error }
            return WalletResult(operation: "", code: ErrorCode.timeOut.rawValue, message: Self.unknownOutcome(error))
        }
    }

    private static func unknownOutcome(_ error: ClientError) -> String {
        "\(error.text); it is not known whether the transaction was carried out: look at the chain before you repeat it"
    }

    private static func code(of error: ClientError) -> ErrorCode {
        switch error {
        case .invalidPath, .notRunning, .permissionDenied, .unreachable, .notServed: .cannotWakeUp
        default: .failure
        }
    }

    private func fail(_ code: ErrorCode, _ message: String, _ response: MYKEYApiResponse) {
        finish(WalletResult(operation: "", code: code.rawValue, message: message), Response(response))
    }

    private func finish(_ result: WalletResult, _ response: Response) {
        let text = String(decoding: result.json.bytes, as: UTF8.self)
        queue.async {
            if result.isSuccess {
                response.object.onSuccess(text)
            } else if result.isCancelled {
                response.object.onCancelled(text)
            } else {
                response.object.onError(text)
            }
        }
    }
}

/// Unchecked: the response crosses threads, but it is used on the callback queue alone.
private struct Response: @unchecked Sendable {
    let object: MYKEYApiResponse

    init(_ object: MYKEYApiResponse) { self.object = object }
}

extension ClientError {
    fileprivate var sentence: String { "\(text); \(advice)" }
}

extension String {
    /// nil for an empty text.
    var nonEmpty: String? { isEmpty ? nil : self }
}

extension BaseRequest {
    fileprivate func options(orderID: String = "") -> WalletOperation.Options {
        WalletOperation.Options(
            info: info.nonEmpty,
            callbackURL: callbackUrl.nonEmpty,
            orderID: orderID.nonEmpty,
            permission: permission.nonEmpty
        )
    }
}

extension WalletResult {
    /// The result for the app: the members of WALLET_RESULT that have a value.
    fileprivate var json: JSON {
        let texts = [
            ("account", account), ("publicKey", publicKey), ("txId", transactionID), ("sign", signature),
            ("callbackError", callbackError), ("callback", callback),
        ]
        return .object(
            [.init("code", .number(String(code))), .init("message", .string(message))]
                + texts.compactMap { key, text in text.map { .init(key, .string($0)) } }
        )
    }
}

extension BaseAction {
    /// The arguments as an object; nil if they are none.
    fileprivate var arguments: JSON? {
        if let transfer = self as? TransferAction {
            let data = transfer.data
            return .object([
                .init("from", .string(data.from)), .init("to", .string(data.to)),
                .init("quantity", .string(data.quantity)), .init("memo", .string(data.memo)),
            ])
        }
        guard let data = (self as? ContractAction)?.data else { return nil }
        if let text = data as? String {
            let json = try? JSON(text.utf8)
            return json?.members == nil ? nil : json
        }
        let json = JSON(any: data)
        return json.members == nil ? nil : json
    }
}

/// The user of the app during one operation, for whom the library inserts a virtual card.
final class InsertingUser: WalletUser {
    private let user: any WalletUser
    private let insertion: VirtualInsertion?
    private let agreed = Mutex(false)

    init(_ user: any WalletUser, _ connection: DaemonConnection, _ insertion: VirtualInsertion?) {
        self.user = user
        self.insertion = insertion
        insertion?.use(connection)
    }

    /// Whether badged may have sent a transaction.
    var hasAgreedToTransaction: Bool { agreed.withLock { $0 } }

    var isAutomatic: Bool { user.isAutomatic }

    func insertCard(error: String?, reader: String?) async {
        await user.insertCard(error: error, reader: reader)
        if error == nil { await insertion?.insert() }
    }

    func agree(to request: WalletRequest) async -> Bool {
        guard await user.agree(to: request) else { return false }
        if request.isTransaction { agreed.withLock { $0 = true } }
        return true
    }

    func answer(_ question: SecretQuestion) async -> SecretBox? { await user.answer(question) }
    func typeOnKeypad(_ question: SecretQuestion) async -> Bool { await user.typeOnKeypad(question) }
    func repositionCard() async -> Bool { await user.repositionCard() }
    func cardLeft(reader: String) async { await user.cardLeft(reader: reader) }
    func progress(_ percent: Int) async { await user.progress(percent) }
    func other(_ event: Event) async { await user.other(event) }
}
