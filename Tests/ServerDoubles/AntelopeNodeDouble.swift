// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Crypto
import Dispatch
import EIDServer
import HDWallet
import Synchronization
import Text

/// A fake node of a chain: it answers the HTTP interface of nodeos from a small state, and refuses what nodeos refuses.
/// It runs no contract: a transfer only moves balances.
package final class AntelopeNodeDouble: Sendable {
    /// What happens instead of the answer to a question.
    package enum Fault: String, Sendable, CaseIterable {
        case redirect
        /// 64 MiB of spaces.
        case huge
        /// The connection is closed instead of an answer.
        case reset
        /// The connection is closed in the middle of the answer.
        case half
        /// An answer of another form.
        case wrongTypes
        case notJSON
        /// An answer of a gateway that does not reach the node.
        case gateway
        /// No answer until `release`.
        case silent
    }

    package struct Token: Sendable {
        package var precision: Int
        /// In the smallest unit, by account.
        package var balances: [String: Int64]

        package init(precision: Int, balances: [String: Int64]) {
            (self.precision, self.balances) = (precision, balances)
        }
    }

    /// The keys of a permission with their weights.
    package struct Authority: Sendable {
        package var threshold: Int
        package var keys: [String: Int]

        package init(threshold: Int = 1, keys: [String: Int]) { (self.threshold, self.keys) = (threshold, keys) }
    }

    package struct State: Sendable {
        package var chain = [UInt8](repeating: 0xC4, count: 32)
        /// The time of the newest block, in seconds since 1970.
        package var time: UInt32 = 1_795_368_600
        package var blockNumber: UInt32 = 0x0012_ABCD
        /// By account and permission.
        package var accounts: [String: [String: Authority]] = [:]
        /// By contract and symbol.
        package var tokens: [String: [String: Token]] = [:]
        /// Packed ABIs by contract.
        package var abis: [String: [UInt8]] = [:]
        package var hasRawABI = true
        /// By question, such as `get_info`.
        package var faults: [String: Fault] = [:]
        /// The questions in their order.
        package var questions: [String] = []
        /// The transactions that were pushed, executed or not.
        package var pushed: [[UInt8]] = []
        /// The ids of those that were executed.
        package var executed: [[UInt8]] = []
        fileprivate var waiters: [(question: String, CheckedContinuation<Void, Never>)] = []

        /// The id of the last irreversible block.
        fileprivate var blockID: [UInt8] {
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: blockNumber >> $0) } + (4..<32).map { UInt8($0 &* 7) }
        }
    }

    /// The state, which the threads of the server share with the test.
    private final class Core: Sendable {
        let state: Mutex<State>
        let gate = DispatchSemaphore(value: 0)
        let isOpen = Mutex(false)

        init(_ state: State) { self.state = Mutex(state) }

        func release() {
            isOpen.withLock { $0 = true }
            gate.signal()
        }

        func waitForRelease() {
            while !isOpen.withLock({ $0 }) { gate.wait() }
            gate.signal()
        }
    }

    private let core: Core
    private let server: WebServer

    package init(isSecure: Bool = false, isExpired: Bool = false) throws {
        var first = State()
        first.abis = ["eosio.token": Self.abi(transfer: "transfer"), "eosio": Self.abi(transfer: "buyram")]
        first.tokens["eosio.token"] = ["EOS": Token(precision: 4, balances: [:])]
        let core = Core(first)
        self.core = core
        server = try WebServer(isSecure: isSecure, isExpired: isExpired) { request in Self.answer(request, core) }
    }

    deinit { core.release() }

    /// The address before `/v1/chain`.
    package var address: String { server.address }
    /// The certificate of the authority in PEM.
    package var authority: String { server.authority }
    package var state: State { core.state.withLock { $0 } }

    package func change(_ body: (inout State) -> Void) { core.state.withLock { body(&$0) } }

    /// Sends the answers that the fault `silent` holds back.
    package func release() { core.release() }

    /// Waits until the node is asked a question, or was asked before.
    package func arrival(of question: String) async {
        await withCheckedContinuation { continuation in
            let isThere = core.state.withLock { state in
                if state.questions.contains(question) { return true }
                state.waiters.append((question, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// A packed ABI with one action, whose data are those of a transfer.
    private static func abi(transfer name: String) -> [UInt8] {
        var writer = PackWriter()
        func text(_ text: String) { writer.counted(Array(text.utf8)) }
        text("eosio::abi/1.1")
        writer.varuint(0)
        writer.varuint(1)
        text(name)
        text("")
        let fields =
            name == "transfer"
            ? [("from", "name"), ("to", "name"), ("quantity", "asset"), ("memo", "string")]
            : [("payer", "name"), ("receiver", "name"), ("quant", "asset")]
        writer.varuint(UInt32(fields.count))
        for (field, type) in fields {
            text(field)
            text(type)
        }
        writer.varuint(1)
        writer.number((try? AccountName(name).value) ?? 0)
        text(name)
        text("")
        for _ in 0..<5 { writer.varuint(0) }
        return writer.bytes
    }

    // MARK: Questions

    private static func answer(_ request: WebServer.Request, _ core: Core) -> WebServer.Answer {
        let question = String(request.path.split(separator: "/").last ?? "")
        let (fault, waiting) = core.state.withLock { state in
            state.questions.append(question)
            let waiting = state.waiters.filter { $0.question == question }
            state.waiters.removeAll { $0.question == question }
            return (state.faults[question], waiting)
        }
        for waiter in waiting { waiter.1.resume() }
        let json = (try? JSON(request.body)) ?? .null
        switch fault {
        case nil: break
        case .redirect:
            return WebServer.Answer(status: 302, headers: [("Location", "https://localhost:1/v1/chain/\(question)")])
        case .huge: return WebServer.Answer([UInt8](repeating: 0x20, count: 64 << 20))
        case .reset: return WebServer.Answer(delivery: .reset)
        case .half:
            var answer = core.state.withLock { reply(question, json, &$0) }
            answer.delivery = .half
            return answer
        case .wrongTypes: return WebServer.Answer(Array(#"{"chain_id":7,"abi":[],"permissions":{},"EOS":[]}"#.utf8))
        case .notJSON: return WebServer.Answer(Array("<html>".utf8))
        case .gateway: return WebServer.Answer(status: 502, Array("Bad Gateway".utf8))
        case .silent:
            core.waitForRelease()
            return WebServer.Answer(delivery: .reset)
        }
        guard request.method == "POST" else { return refusal(405, 0, "method", "only POST") }
        return core.state.withLock { reply(question, json, &$0) }
    }

    private static func reply(_ question: String, _ json: JSON, _ state: inout State) -> WebServer.Answer {
        func text(_ name: String) -> String { json[name]?.string ?? "" }
        switch question {
        case "get_info":
            let time = AntelopeTime(seconds: state.time).text(decimals: 3)
            return object([
                ("chain_id", .string(Hex.encode(state.chain))), ("head_block_time", .string(time)),
                ("last_irreversible_block_id", .string(Hex.encode(state.blockID))),
            ])
        case "get_account":
            guard let permissions = state.accounts[text("account_name")] else {
                return refusal(500, 0, "exception", "unknown key (eosio::chain::name): \(text("account_name"))")
            }
            let items = permissions.map { name, authority in
                JSON.object([
                    .init("perm_name", .string(name)), .init("parent", .string("owner")),
                    .init(
                        "required_auth",
                        .object([
                            .init("threshold", .number("\(authority.threshold)")),
                            .init(
                                "keys",
                                .array(
                                    authority.keys.map {
                                        .object([.init("key", .string($0)), .init("weight", .number("\($1)"))])
                                    }
                                )
                            ),
                        ])
                    ),
                ])
            }
            return object([("account_name", .string(text("account_name"))), ("permissions", .array(items))])
        case "get_raw_abi" where state.hasRawABI:
            guard let abi = state.abis[text("account_name")] else {
                return refusal(500, 0, "exception", "unknown key (eosio::chain::name): \(text("account_name"))")
            }
            let hash = (try? DigestAlgorithm.sha256.hash(abi)) ?? []
            return object([("abi_hash", .string(Hex.encode(hash))), ("abi", .string(base64(abi)))])
        case "get_abi":
            let abi = try? JSON(
                #"{"version":"eosio::abi/1.1","structs":[{"name":"transfer","base":"","fields":[{"name":"from","type":"name"},{"name":"to","type":"name"},{"name":"quantity","type":"asset"},{"name":"memo","type":"string"}]}],"actions":[{"name":"transfer","type":"transfer","ricardian_contract":""}]}"#
                    .utf8
            )
            return object([("account_name", .string(text("account_name"))), ("abi", abi ?? .null)])
        case "get_currency_stats":
            guard let token = state.tokens[text("code")]?[text("symbol")] else { return object([]) }
            let supply = amount(1, token.precision, text("symbol"))
            return object([(text("symbol"), .object([.init("supply", .string(supply))]))])
        case "get_currency_balance":
            guard let token = state.tokens[text("code")]?[text("symbol")], let balance = token.balances[text("account")]
            else { return WebServer.Answer(JSON.array([]).bytes) }
            return WebServer.Answer(JSON.array([.string(amount(balance, token.precision, text("symbol")))]).bytes)
        case "push_transaction": return push(json, &state)
        default: return refusal(404, 0, "not_found", "Unknown Endpoint")
        }
    }

    // MARK: push_transaction

    private static func push(_ json: JSON, _ state: inout State) -> WebServer.Answer {
        guard let packed = Hex.decode(json["packed_trx"]?.string ?? "") else {
            return refusal(400, 3_100_004, "parse", "no transaction")
        }
        state.pushed.append(packed)
        guard let transaction = try? Transaction(packed: packed), json["compression"] == .number("0"),
            json["packed_context_free_data"] == .string(""), let id = try? Transaction.id(of: packed),
            let signatures = json["signatures"]?.array, let chain = ChainID(state.chain)
        else { return refusal(500, 3_040_000, "transaction_exception", "the transaction is malformed") }
        guard transaction.expiration > state.time else {
            return refusal(500, 3_040_005, "expired_tx_exception", "expired transaction \(Hex.encode(id))")
        }
        guard transaction.expiration <= state.time + 3600 else {
            return refusal(500, 3_040_006, "tx_exp_too_far_exception", "expiration is too far in the future")
        }
        guard transaction.reference == BlockReference(blockID: state.blockID) else {
            return refusal(500, 3_040_007, "invalid_ref_block_exception", "the reference block does not match")
        }
        guard !state.executed.contains(id) else {
            return refusal(409, 3_040_008, "tx_duplicate", "duplicate transaction \(Hex.encode(id))")
        }
        var keys: Set<KeyText> = []
        for text in signatures {
            guard let parsed = try? KeyText(text.string ?? "", .signature), let signature = CompactSignature(parsed),
                isCanonical(parsed.content)
            else { return refusal(500, 10, "assert_exception", "signature is not canonical") }
            guard let digest = try? Transaction.digest(of: packed, on: chain),
                let key = try? signature.recover(digest)
            else { return refusal(500, 3_090_000, "authorization_exception", "no key") }
            keys.insert(KeyText(key))
        }
        for level in transaction.actions.flatMap(\.authorization) {
            guard isSatisfied(level, keys, state) else {
                let words =
                    "transaction declares authority '\(level.actor)@\(level.permission)', but does not have signatures for it"
                return refusal(500, 3_090_003, "unsatisfied_authorization", words)
            }
        }
        var tokens = state.tokens
        for action in transaction.actions where "\(action.name)" == "transfer" {
            if let words = move(action, &tokens) {
                return refusal(
                    500,
                    3_050_003,
                    "eosio_assert_message_exception",
                    "assertion failure with message: \(words)"
                )
            }
        }
        state.tokens = tokens
        state.executed.append(id)
        let receipt = JSON.object([.init("status", .string("executed"))])
        return object(
            [("transaction_id", .string(Hex.encode(id))), ("processed", .object([.init("receipt", receipt)]))],
            status: 202
        )
    }

    /// The rule of nodes, without the code of badged.
    private static func isCanonical(_ bytes: [UInt8]) -> Bool {
        guard bytes.count == 65 else { return false }
        return bytes[1] & 0x80 == 0 && !(bytes[1] == 0 && bytes[2] & 0x80 == 0) && bytes[33] & 0x80 == 0
            && !(bytes[33] == 0 && bytes[34] & 0x80 == 0)
    }

    private static func isSatisfied(_ level: PermissionLevel, _ keys: Set<KeyText>, _ state: State) -> Bool {
        guard let authority = state.accounts["\(level.actor)"]?["\(level.permission)"] else { return false }
        let weight = authority.keys.reduce(0) { sum, entry in
            guard let key = try? KeyText(entry.key, .publicKey), keys.contains(key) else { return sum }
            return sum + entry.value
        }
        return weight >= authority.threshold
    }

    /// Moves the amount of a transfer; returns the words of the contract if it cannot.
    private static func move(_ action: AntelopeAction, _ tokens: inout [String: [String: Token]]) -> String? {
        var reader = PackReader(action.data)
        guard let from = try? AccountName(value: reader.number()), let to = try? AccountName(value: reader.number()),
            let amount: Int64 = try? reader.number(), let symbol: UInt64 = try? reader.number(),
            let kind = try? TokenSymbol(value: symbol), let memo = try? reader.string(), reader.isAtEnd
        else { return "malformed data" }
        guard var token = tokens["\(action.account)"]?["\(kind.code)"] else { return "no token with this symbol" }
        guard token.precision == kind.precision else { return "symbol precision mismatch" }
        guard memo.utf8.count <= 256 else { return "memo has more than 256 bytes" }
        guard amount > 0 else { return "must transfer positive quantity" }
        guard action.authorization.contains(where: { $0.actor == from }) else { return "missing authority of \(from)" }
        guard token.balances["\(from)", default: 0] >= amount else { return "overdrawn balance" }
        token.balances["\(from)", default: 0] -= amount
        token.balances["\(to)", default: 0] += amount
        tokens["\(action.account)"]?["\(kind.code)"] = token
        return nil
    }

    // MARK: Answers

    private static func object(_ members: [(String, JSON)], status: Int = 200) -> WebServer.Answer {
        WebServer.Answer(status: status, JSON.object(members.map { JSON.Member($0.0, $0.1) }).bytes)
    }

    private static func refusal(_ status: Int, _ code: Int, _ name: String, _ words: String) -> WebServer.Answer {
        let details = JSON.array([.object([.init("message", .string(words)), .init("method", .string("double"))])])
        let error = JSON.object([
            .init("code", .number("\(code)")), .init("name", .string(name)), .init("what", .string(name)),
            .init("details", details),
        ])
        return object(
            [("code", .number("\(status)")), ("message", .string("Internal Service Error")), ("error", error)],
            status: status
        )
    }

    private static func amount(_ amount: Int64, _ precision: Int, _ code: String) -> String {
        guard let code = try? SymbolCode(code), let symbol = try? TokenSymbol(precision: precision, code: code),
            let asset = try? Asset(amount: amount, symbol: symbol)
        else { return "" }
        return asset.description
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let value = (0..<3).reduce(0) { $0 << 8 | Int($1 < group.count ? group[start + $1] : 0) }
            for index in 0...3 {
                text.append(index <= group.count ? alphabet[value >> (18 - 6 * index) & 0x3F] : "=")
            }
        }
        return text
    }
}
