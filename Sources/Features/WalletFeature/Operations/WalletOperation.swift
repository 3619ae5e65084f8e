// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Cards
import Concurrency
import Crypto
import HDWallet
import HTTP
import Keycard
import Secp256k1
import Server
import Text

/// One operation of WALLET_AUTHORIZE and its siblings. docs/protocol/wallet.md, MYKEY operations.
///
/// Nothing is signed that was not shown and accepted before, and a transaction is pushed at most once.
@Loop final class WalletOperation {
    private let workflow: Workflow
    private let services: KeycardServices
    private let antelope: AntelopeServices
    private let bindings: Bindings
    private let request: OperationRequest
    /// nil: there is no binding in this mode.
    private let bindingKey: Bindings.Key?

    private var binding: Bindings.Binding?
    private var account: AccountName?
    private var publicKey: KeyText?
    private var transactionID: [UInt8]?
    /// The wallet of the card that has signed.
    private var keyUID: [UInt8] = []
    /// Why the dialogue with the card ended, if it was not the card.
    private var stopped: OperationFailure?
    /// Whether the PIN of the card in use is blocked.
    private var isPINBlocked = false

    /// The path of the key: m/44'/194'/0'/0/0. SLIP-44.
    private static let path = DerivationPath("m/44'/194'/0'/0/0")
    /// About every second signature of a card is canonical.
    private static let maximumSignatures = 32
    /// The name of this wallet in callbacks.
    private static let reference = "badged"

    init(
        _ workflow: Workflow,
        _ services: KeycardServices,
        _ antelope: AntelopeServices,
        _ request: OperationRequest,
        _ bindingKey: Bindings.Key?
    ) {
        (self.workflow, self.services, self.antelope) = (workflow, services, antelope)
        (self.request, self.bindingKey) = (request, bindingKey)
        bindings = Bindings(services.store)
        account = request.account
    }

    /// Runs the operation. At its end the card and its reader are free.
    func run() async -> WalletResultMessage {
        do throws(OperationFailure) {
            return try await perform()
        } catch {
            return result(error)
        }
    }

    private func result(_ outcome: OperationFailure) -> WalletResultMessage {
        var message = WalletResultMessage(request.body.kind, outcome)
        (message.account, message.publicKey) = (account, publicKey?.description)
        (message.transactionID, message.link) = (transactionID, request.link)
        return message
    }

    private func perform() async throws(OperationFailure) -> WalletResultMessage {
        workflow.progress(0)
        if let bindingKey { binding = try await bindings.binding(bindingKey) }
        try checkBinding()
        switch request.body {
        case .authorize: return try await authorize()
        case .sign(let message): return try await sign(message)
        case .transfer, .contract: return try await transact()
        }
    }

    /// In mode MYKEY all operations but AUTHORIZE need a binding, and act for its account.
    private func checkBinding() throws(OperationFailure) {
        guard bindingKey != nil, request.body.kind != .authorize else { return }
        guard let binding else {
            throw OperationFailure(.notBound, "There is no binding for appKey and UUID: WALLET_AUTHORIZE first")
        }
        account = account ?? binding.account
        guard account == binding.account else {
            throw OperationFailure(
                .badField,
                "appKey and UUID are bound to another account than \(request.account.map { "\($0)" } ?? "")"
            )
        }
    }

    private var permission: AccountName {
        get throws(OperationFailure) {
            if let permission = request.permission ?? binding?.permission { return permission }
            return try valid("permission") { () throws(AntelopeError) in try AccountName("active") }
        }
    }

    // MARK: AUTHORIZE and SIGN

    private func authorize() async throws(OperationFailure) -> WalletResultMessage {
        guard let account else { throw OperationFailure(.badField, "account is missing") }
        let permission = try permission
        let node = try connect()
        defer { node.client.close() }
        _ = try await asking(node.node) { node throws(NodeFailure) in try await node.info() }
        let known = try await self.known(account, node.node)
        let (uuid, timestamp) = (request.dapp.uuid, antelope.time())
        let text = "\(timestamp)\(account)\(uuid)\(Self.reference)"
        let shown = try shown(text: text, chain: antelope.chain, permission: permission)
        let signature = try await signature(shown, permission, known)
        let number = "\(timestamp)"
        let isSimpleWallet = request.dapp.mode == .simpleWallet
        var body = [
            JSON.Member("protocol", .string(request.dapp.mode.rawValue)), JSON.Member("version", .string("1.0")),
        ]
        if !isSimpleWallet {
            body.append(JSON.Member("dapp_key", request.dapp.appKey.map { .string($0) } ?? .null))
        }
        body += [
            JSON.Member("uuID", .string(uuid)),
            JSON.Member("public_key", .string(publicKey?.legacy ?? "")),
            JSON.Member("sign", .string(signature.text.description)),
            JSON.Member("ref", .string(Self.reference)),
            JSON.Member("timestamp", isSimpleWallet ? .number(number) : .string(number)),
            JSON.Member("account", .string("\(account)")),
        ]
        try await deliver(body)
        if let bindingKey {
            let new = Bindings.Binding(
                account: account,
                permission: permission,
                keyUID: keyUID,
                publicKey: publicKey?.description ?? ""
            )
            try await bindings.bind(bindingKey, to: new)
        }
        return done("\(account) is authorized", signature)
    }

    private func sign(_ message: String) async throws(OperationFailure) -> WalletResultMessage {
        let signature = try await signature(try shown(text: message, chain: nil, permission: nil), nil, nil)
        try await deliver([
            JSON.Member("protocol", .string(request.dapp.mode.rawValue)),
            JSON.Member("version", .string("1.0")),
            JSON.Member("message", .string(message)),
            JSON.Member("sign", .string(signature.text.description)),
            JSON.Member("ref", .string(Self.reference)),
            JSON.Member("account", account.map { .string("\($0)") } ?? .null),
        ])
        return done("The message is signed", signature)
    }

    private func shown(
        text: String,
        chain: ChainID?,
        permission: AccountName?
    ) throws(OperationFailure) -> ShownRequest {
        let digest = try hashing { () throws(CryptoError) in try DigestAlgorithm.sha256.hash(Array(text.utf8)) }
        return shown(text: text, chain: chain, permission: permission, digest: digest)
    }

    private func shown(
        text: String? = nil,
        chain: ChainID?,
        permission: AccountName?,
        actions: [ShownRequest.ShownAction] = [],
        expiration: AntelopeTime? = nil,
        digest: [UInt8]
    ) -> ShownRequest {
        ShownRequest(
            dapp: request.dapp,
            kind: request.body.kind,
            info: request.info,
            userName: request.userName,
            callback: request.callback?.text,
            chain: chain,
            account: account,
            permission: permission,
            text: text,
            actions: actions,
            expiration: expiration,
            digest: digest
        )
    }

    private func done(_ text: String, _ signature: CompactSignature? = nil) -> WalletResultMessage {
        var message = result(OperationFailure(.done, text))
        message.signature = signature?.text.description
        return message
    }

    /// Sends a signature to the server of the dapp, which decides whether the operation succeeds.
    private func deliver(_ body: [JSON.Member]) async throws(OperationFailure) {
        guard let error = await post(body) else { return }
        if workflow.isCancelled { throw .cancelled }
        throw OperationFailure(.failed, "The callback failed: \(error)", callbackError: error)
    }

    /// Posts to the callback, if there is one. Returns why it failed.
    private func post(_ body: [JSON.Member]) async -> String? {
        guard let address = request.callback else { return nil }
        workflow.progress(90)
        let client = HTTPClient(antelope.limits, antelope.proxies, antelope.callbackAuthorities)
        defer { client.close() }
        return await CallbackPost(address: address, body: .object(body), userAgent: antelope.userAgent).send(client)
    }

    // MARK: TRANSFER and CONTRACT

    private func transact() async throws(OperationFailure) -> WalletResultMessage {
        guard let account else { throw OperationFailure(.badField, "the account that signs is missing") }
        let permission = try permission
        let node = try connect()
        defer { node.client.close() }
        // A node of another chain is refused before anything of it is used.
        _ = try await asking(node.node) { node throws(NodeFailure) in try await node.info() }
        let known = try await self.known(account, node.node)
        let plan = try await plan(account, permission, node.node)
        let signed = try await sign(plan, permission, known, node.node)
        let id = try hashing { () throws(CryptoError) in try Transaction.id(of: signed.packed) }
        guard !workflow.isCancelled else { throw .cancelled }
        transactionID = id
        workflow.progress(80)
        switch await node.node.push(signed.packed, signed.signature.text) {
        case .executed: break
        case .refused(let refusal):
            if refusal.isOverdrawn { throw OperationFailure(.balanceTooSmall, "The node reports: \(refusal.text)") }
            if refusal.isExpired { throw OperationFailure(.outcomeUnknown, "The node reports: \(refusal.text)") }
            throw OperationFailure(.failed, "The node refuses the transaction: \(refusal.text)")
        case .notSent(let words): throw OperationFailure(.failed, "The transaction was not sent: \(words)")
        case .unknown(let words):
            throw OperationFailure(
                .outcomeUnknown,
                "Nobody knows whether the transaction has an effect (\(words)): look for txId before you repeat it"
            )
        }
        let error = await post([
            JSON.Member("protocol", .string(request.dapp.mode.rawValue)), JSON.Member("version", .string("1.0")),
            JSON.Member("tx_id", .string(Hex.encode(id))), JSON.Member("ref", .string(Self.reference)),
            JSON.Member("account", .string("\(account)")),
        ])
        var message = done("The transaction was executed")
        message.callbackError = error
        return message
    }

    /// The packed actions of a transaction, which stay the same if it has to be dated anew.
    private struct Plan {
        var actions: [ShownRequest.ShownAction]
        var packed: [UInt8]
        var shown: ShownRequest
        /// After this time the rest of the life of the transaction may be too short.
        var lastMoment: ContinuousClock.Instant
    }

    /// The life of a transaction, and its rest that signing and sending may need.
    private static let life: UInt32 = 60
    private static let reserve = Duration.seconds(20)

    private func plan(
        _ account: AccountName,
        _ permission: AccountName,
        _ node: AntelopeNode
    ) async throws(OperationFailure) -> Plan {
        var abis: [AccountName: ABI] = [:]
        var actions: [ShownRequest.ShownAction] = []
        for (index, wanted) in try await wantedActions(account, node).enumerated() {
            let place = "actions[\(index)]"
            let abi: ABI
            if let found = abis[wanted.account] {
                abi = found
            } else {
                abi = try await self.abi(of: wanted.account, node)
                abis[wanted.account] = abi
            }
            guard let type = abi.type(of: wanted.name) else {
                throw OperationFailure(.badField, "\(place): \(wanted.account) has no action \(wanted.name)")
            }
            let data = try valid("data") { () throws(AntelopeError) in try abi.pack(wanted.data, as: type) }
            let level = PermissionLevel(actor: account, permission: permission)
            let action = Action(account: wanted.account, name: wanted.name, authorization: [level], data: data)
            // The user sees what is in the bytes, not what the dapp has sent.
            let decoded = try valid("data") { () throws(AntelopeError) in try abi.unpack(data, as: type) }
            try await check(decoded, of: action, account, node)
            actions.append(ShownRequest.ShownAction(action: action, data: decoded, info: wanted.info))
        }
        return try await dated(actions, permission, node)
    }

    /// Dates a transaction with these actions, and decodes it from its bytes.
    private func dated(
        _ actions: [ShownRequest.ShownAction],
        _ permission: AccountName,
        _ node: AntelopeNode
    ) async throws(OperationFailure) -> Plan {
        let begin = services.now()
        let info = try await asking(node) { node throws(NodeFailure) in try await node.info() }
        let seconds = try valid("head_block_time") { () throws(AntelopeError) in try info.time.seconds }
        let (expiration, isTooLate) = seconds.addingReportingOverflow(Self.life)
        guard !isTooLate else { throw OperationFailure(.failed, "The node has a time after 2106") }
        let transaction = Transaction(
            expiration: expiration,
            reference: info.reference,
            actions: actions.map(\.action)
        )
        let packed = transaction.packed
        let read = try valid("transaction") { () throws(AntelopeError) in try Transaction(packed: packed) }
        guard read == transaction, packed.count <= Transaction.maximumCount else {
            throw OperationFailure(.badField, "The transaction is too large")
        }
        let digest = try hashing { () throws(CryptoError) in
            try Transaction.digest(of: packed, on: antelope.chain)
        }
        let shown = shown(
            chain: antelope.chain,
            permission: permission,
            actions: zip(actions, read.actions).map {
                ShownRequest.ShownAction(action: $1, data: $0.data, info: $0.info)
            },
            expiration: AntelopeTime(seconds: read.expiration),
            digest: digest
        )
        let lastMoment = begin + .seconds(Int(Self.life)) - Self.reserve
        return Plan(actions: actions, packed: packed, shown: shown, lastMoment: lastMoment)
    }

    /// The actions with their data in JSON, as the ABI will pack it.
    private func wantedActions(
        _ account: AccountName,
        _ node: AntelopeNode
    ) async throws(OperationFailure) -> [OperationRequest.RequestedAction] {
        switch request.body {
        case .authorize, .sign: return []
        case .contract(let actions): return actions
        case .transfer(let transfer):
            let quantity = try valid("amount") { () throws(AntelopeError) in
                try Asset(decimal: transfer.amount, code: transfer.code, precision: transfer.decimals)
            }
            let data = JSON.object([
                JSON.Member("from", .string("\(account)")), JSON.Member("to", .string("\(transfer.to)")),
                JSON.Member("quantity", .string("\(quantity)")), JSON.Member("memo", .string(transfer.memo)),
            ])
            let name = try valid("transfer") { () throws(AntelopeError) in try AccountName("transfer") }
            return [
                OperationRequest.RequestedAction(
                    account: transfer.contract,
                    name: name,
                    data: data,
                    info: transfer.info
                )
            ]
        }
    }

    /// Checks a transfer of a token: its decimals, the memo, and the balance of the account.
    private func check(
        _ data: JSON,
        of action: Action,
        _ account: AccountName,
        _ node: AntelopeNode
    ) async throws(OperationFailure) {
        guard "\(action.name)" == "transfer", let text = data["quantity"]?.string, let quantity = try? Asset(text)
        else {
            return
        }
        let (code, contract) = (quantity.symbol.code, action.account)
        let stats = try await asking(node) { node throws(NodeFailure) in try await node.stats(of: code, at: contract) }
        guard let symbol = stats.symbol else {
            throw OperationFailure(.badField, "\(contract) has no token \(code)")
        }
        guard symbol == quantity.symbol else {
            throw OperationFailure(
                .badField,
                "\(quantity) must have \(symbol.precision) decimals, as all amounts of \(code) at \(contract)"
            )
        }
        if let memo = data["memo"]?.string, memo.utf8.count > 256 {
            throw OperationFailure(.badField, "memo has more than 256 bytes")
        }
        guard data["from"]?.string == "\(account)" else { return }
        let found = try await asking(node) { node throws(NodeFailure) in
            try await node.balance(of: account, in: code, at: contract)
        }
        let balance = found.balance?.amount ?? 0
        guard balance >= quantity.amount else {
            let words = found.balance.map { "\($0)" } ?? "no \(code)"
            throw OperationFailure(.balanceTooSmall, "\(account) has \(words), which is less than \(quantity)")
        }
    }

    /// Shows a transaction, and signs it. It is shown again if it is too old when the card is ready.
    private func sign(
        _ first: Plan,
        _ permission: AccountName,
        _ known: NodeAccount,
        _ node: AntelopeNode
    ) async throws(OperationFailure) -> (packed: [UInt8], signature: CompactSignature) {
        try await approve(first.shown)
        var plan = first
        var made: CompactSignature?
        try await withCard(permission, known) { dialogue, card throws(KeycardStop) in
            while self.services.now() > plan.lastMoment {
                do throws(OperationFailure) {
                    plan = try await self.dated(plan.actions, permission, node)
                } catch {
                    throw self.stop(error)
                }
                let error = "The transaction was too old to be signed, and has a new time: look at it again"
                _ = try await dialogue.ask(WalletRequestPrompt(shown: plan.shown, error: error, lease: card.lease))
            }
            made = try await self.signature(of: plan.shown, dialogue, card)
        }
        guard let made else { throw OperationFailure(.cardFailed, "The card made no signature") }
        return (plan.packed, made)
    }

    // MARK: The card

    /// Shows a request, and signs its digest when the user has accepted it.
    private func signature(
        _ shown: ShownRequest,
        _ permission: AccountName?,
        _ known: NodeAccount?
    ) async throws(OperationFailure) -> CompactSignature {
        try await approve(shown)
        var made: CompactSignature?
        try await withCard(permission, known) { dialogue, card throws(KeycardStop) in
            made = try await self.signature(of: shown, dialogue, card)
        }
        guard let made else { throw OperationFailure(.cardFailed, "The card made no signature") }
        return made
    }

    private func approve(_ shown: ShownRequest) async throws(OperationFailure) {
        do throws(Interruption) {
            try await workflow.ask(WalletRequestPrompt(shown: shown))
        } catch {
            throw error == .timedOut ? OperationFailure(WalletFailure.requestTimedOut) : .cancelled
        }
    }

    /// Runs `body` with a card that belongs to the binding, is unlocked, and has a key that the account knows.
    private func withCard(
        _ permission: AccountName?,
        _ known: NodeAccount?,
        _ body: @escaping @Loop (KeycardDialogue, HeldKeycard) async throws(KeycardStop) -> Void
    ) async throws(OperationFailure) {
        let dialogue = KeycardDialogue(services, workflow, readerName: request.readerName, userID: nil)
        stopped = nil
        do throws(WalletFailure) {
            try await dialogue.run { card throws(KeycardStop) in
                try await self.open(card, dialogue)
                try await self.readKey(of: card, dialogue, permission, known)
                self.workflow.progress(60)
                try await body(dialogue, card)
            }
        } catch {
            if let stopped { throw stopped }
            if error.code == .requestTimedOut, isPINBlocked {
                throw OperationFailure(.cardBlocked, "The PIN of the card is blocked, and no PUK was entered in time")
            }
            if error.code == .userCanceled, hasOnlyOtherCards {
                throw OperationFailure(.unsupportedCard, "Cancelled: the card in the reader has no Keycard applet")
            }
            throw OperationFailure(error)
        }
    }

    /// Ends the dialogue with the card by a reason that is not the card's.
    private func stop(_ failure: OperationFailure) -> KeycardStop {
        stopped = failure
        return .failed(WalletFailure(.cardFailed, failure.message))
    }

    /// Checks the binding before anything is asked, then opens the channel and asks for the PIN.
    private func open(_ card: HeldKeycard, _ dialogue: KeycardDialogue) async throws(KeycardStop) {
        isPINBlocked = false
        guard card.info.isInitialized else { throw .failed(.notInitialised) }
        guard let uid = card.info.keyUID else { throw .failed(.noKeys) }
        keyUID = uid
        if request.body.kind == .authorize, let bindingKey, let account {
            do throws(OperationFailure) {
                if let conflict = try await bindings.conflict(bindingKey, account: account, keyUID: uid) {
                    throw conflict
                }
            } catch {
                throw stop(error)
            }
        } else if let binding {
            guard binding.keyUID == uid else {
                throw stop(OperationFailure(.boundToOtherCard, "appKey and UUID are bound to another card"))
            }
            if card.info.generation == .pairing {
                guard try await dialogue.openWithKnownPairing(card) else {
                    let words =
                        "This computer is not paired with the bound card any more: pair it again (badgectl wallet)"
                    throw stop(OperationFailure(.notPaired, words))
                }
                try await dialogue.step("GET STATUS", card) { () throws(KeycardError) in try await card.refresh() }
                isPINBlocked = card.status?.pinTries == 0
                try await dialogue.unlock(card)
                isPINBlocked = false
                return
            }
        }
        try await dialogue.openChannel(card)
        isPINBlocked = card.status?.pinTries == 0
        try await dialogue.unlock(card)
        isPINBlocked = false
    }

    private func readKey(
        of card: HeldKeycard,
        _ dialogue: KeycardDialogue,
        _ permission: AccountName?,
        _ known: NodeAccount?
    ) async throws(KeycardStop) {
        guard let path = Self.path else { return }
        let key = KeyText(
            try await dialogue.step("EXPORT KEY", card) { () throws(KeycardError) in
                try await card.applet.exportPublicKey(path)
            }
        )
        publicKey = key
        if let binding, request.body.kind != .authorize, binding.publicKey != key.description {
            // The duress wallet has the key UID of the main one, and other keys.
            throw stop(OperationFailure(.boundToOtherCard, "The card opened another wallet than the bound one"))
        }
        guard let known, let permission, let account else { return }
        switch known.authority(of: key, for: permission) {
        case .full: return
        case .partial:
            let words = "The permission \(permission) of \(account) needs more keys than that of the card"
            throw stop(OperationFailure(.keyNotInAccount, words))
        case .missing:
            let words = "The permission \(permission) of \(account) does not have the key of the card, \(key)"
            throw stop(OperationFailure(.keyNotInAccount, words))
        }
    }

    /// Signs the digest of a request that was shown and accepted, until nodes accept the form of the signature.
    private func signature(
        of shown: ShownRequest,
        _ dialogue: KeycardDialogue,
        _ card: HeldKeycard
    ) async throws(KeycardStop) -> CompactSignature {
        guard let path = Self.path, let expected = publicKey.flatMap({ try? PublicKey($0.content) }) else {
            throw .failed(WalletFailure(.cardFailed, "The card told no key"))
        }
        workflow.workBegins()
        for _ in 0..<Self.maximumSignatures {
            if workflow.isCancelled { throw .cancelled }
            let made = try await dialogue.step("SIGN", card) { () throws(KeycardError) in
                try await card.applet.sign(shown.digest, with: path, expecting: expected)
            }
            let signature = CompactSignature(made.signature, recoveryID: made.recoveryID)
            if signature.isCanonical { return signature }
        }
        let words = "The card made no signature in \(Self.maximumSignatures) tries that nodes accept"
        throw .failed(WalletFailure(.signatureFailed, words, at: "SIGN"))
    }

    /// Whether there are cards in readers, but no Keycard.
    private var hasOnlyOtherCards: Bool {
        let cards = services.registry.readers.filter { reader in
            reader.insertion != nil && (request.readerName ?? reader.name) == reader.name
        }
        return !cards.isEmpty
            && cards.allSatisfy { reader in
                if case .known(let profile) = reader.card { return !(profile is KeycardProfile) }
                return true
            }
    }

    // MARK: The node

    private func connect() throws(OperationFailure) -> (node: AntelopeNode, client: HTTPClient) {
        guard let address = antelope.node else {
            throw OperationFailure(.failed, "badged has no node of a chain: set [wallet] node in badged.conf(5)")
        }
        let client = HTTPClient(antelope.limits, antelope.proxies, antelope.nodeAuthorities)
        return (AntelopeNode(address, antelope.chain, client, userAgent: antelope.userAgent), client)
    }

    /// The permissions of an account.
    private func known(
        _ account: AccountName,
        _ node: AntelopeNode
    ) async throws(OperationFailure) -> NodeAccount {
        try await asking(node, about: "account \(account)") { node throws(NodeFailure) in
            try await node.account(account)
        }
    }

    private func abi(of contract: AccountName, _ node: AntelopeNode) async throws(OperationFailure) -> ABI {
        // A contract without a usable ABI cannot be called.
        try await asking(node, about: "contract \(contract)", senseless: .badField) { node throws(NodeFailure) in
            try await node.abi(of: contract)
        }
    }

    /// Asks the node.
    ///
    /// If a client has named the `subject`, a refusal is a fault of that name. A senseless answer has the code `senseless`.
    private func asking<T: Sendable>(
        _ node: AntelopeNode,
        about subject: String? = nil,
        senseless: OperationCode = .failed,
        _ body: (AntelopeNode) async throws(NodeFailure) -> T
    ) async throws(OperationFailure) -> T {
        do throws(NodeFailure) {
            return try await body(node)
        } catch {
            if workflow.isCancelled { throw .cancelled }
            switch error {
            case .cancelled: throw .cancelled
            case .unreachable(let words): throw OperationFailure(.failed, "The node cannot be reached: \(words)")
            case .noAnswer(let words): throw OperationFailure(.failed, "The node gives no answer: \(words)")
            case .refused(let refusal):
                if let subject { throw OperationFailure(.badField, "\(subject): \(refusal.text)") }
                throw OperationFailure(.failed, "The node refuses a question: \(refusal.text)")
            case .malformed(let words):
                throw OperationFailure(
                    senseless,
                    "The node does not follow its protocol, \(subject ?? "chain"): \(words)"
                )
            case .wrongChain(let chain):
                let words = "The node belongs to the chain \(chain), and not to \(antelope.chain) of [wallet] chain_id"
                throw OperationFailure(.failed, words)
            }
        }
    }

    private func hashing<T>(_ body: () throws(CryptoError) -> T) throws(OperationFailure) -> T {
        do throws(CryptoError) {
            return try body()
        } catch {
            throw OperationFailure(.failed, "SHA-256 is not available: \(error)")
        }
    }
}
