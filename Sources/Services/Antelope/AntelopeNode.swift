// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
package import HTTP
package import Text

/// Why a node gave no usable answer.
package enum NodeFailure: Error, Sendable, Equatable {
    case cancelled
    /// There is no connection, so nothing was sent.
    case unreachable(Phrase)
    /// The request may have been sent, but there is no answer, or the answer is not one of a node.
    case noAnswer(Phrase)
    /// The node reports an error.
    case refused(NodeRefusal)
    /// The answer is malformed.
    case malformed(String)
    /// The node belongs to another chain.
    case wrongChain(ChainID)
    /// The ABI of a contract cannot be used. The node is not at fault.
    case unusableABI(String)

    init(_ fault: HTTPFault) {
        self =
            switch fault {
            case .cancelled: .cancelled
            case .unreachable, .unavailable, .proxy, .tls, .privateServer: .unreachable(fault.text(Phrase("the node")))
            case .timeout, .tooLarge, .broken, .lost: .noAnswer(fault.text(Phrase("the node")))
            }
    }
}

/// What happened to a transaction that was pushed.
package enum PushOutcome: Sendable, Equatable {
    case executed
    /// The node refused the transaction, or it has failed. It has no effect, unless an earlier push of it
    /// (`isDuplicate`, `isExpired`) had one.
    case refused(NodeRefusal)
    /// Nothing was sent.
    case notSent(Phrase)
    /// The transaction may have an effect.
    case unknown(Phrase)
}

/// A node of an Antelope chain, over its HTTP interface.
package struct AntelopeNode: Sendable {
    private let base: String
    private let chain: ChainID
    private let session: HTTPSession
    private let userAgent: String

    /// Takes the address of a node before `/v1/chain/...`, and the chain to which the node must belong.
    package init(_ address: WebAddress, _ chain: ChainID, _ session: HTTPSession, userAgent: String) {
        base = address.text.hasSuffix("/") ? String(address.text.dropLast()) : address.text
        self.chain = chain
        self.session = session
        self.userAgent = userAgent
    }

    /// Requests the state of the chain.
    /// - Throws: `.wrongChain` if the node belongs to another chain.
    package func info() async throws(NodeFailure) -> NodeInfo {
        let bytes = try await call("get_info", .object([]))
        let info = try Self.reading(NodeInfo(bytes))
        guard info.chain == chain else { throw .wrongChain(info.chain) }
        return info
    }

    package func account(_ name: AccountName) async throws(NodeFailure) -> NodeAccount {
        let bytes = try await call("get_account", Self.object([("account_name", "\(name)")]))
        return try Self.reading(NodeAccount(bytes))
    }

    /// Requests the ABI of a contract in the packed form, and in JSON from nodes that do not support the packed form.
    package func abi(of contract: AccountName) async throws(NodeFailure) -> ABI {
        let question = Self.object([("account_name", "\(contract)")])
        do throws(NodeFailure) {
            let answer = try await call("get_raw_abi", question)
            return try await Self.working { () throws(NodeFailure) in
                let packed = try Self.reading(NodeAnswer.rawABI(answer))
                return try Self.reading(ABI(packed: packed), orElse: NodeFailure.unusableABI)
            }
        } catch {
            guard case .refused(let refusal) = error, refusal.status == 404 else { throw error }
        }
        let answer = try await call("get_abi", question)
        return try await Self.working { () throws(NodeFailure) in
            let json = try Self.reading(NodeAnswer.abi(answer))
            return try Self.reading(ABI(json), orElse: NodeFailure.unusableABI)
        }
    }

    /// Reads an ABI, which anybody can make large, beside the loop.
    private static func working(
        _ body: @escaping @Sendable () throws(NodeFailure) -> ABI
    ) async throws(NodeFailure) -> ABI {
        try await Pool.run(orIfCancelled: NodeFailure.cancelled, body)
    }

    package func stats(of code: SymbolCode, at contract: AccountName) async throws(NodeFailure) -> CurrencyStats {
        let bytes = try await call("get_currency_stats", Self.object([("code", "\(contract)"), ("symbol", "\(code)")]))
        return try Self.reading(CurrencyStats(bytes, of: code))
    }

    package func balance(
        of account: AccountName,
        in code: SymbolCode,
        at contract: AccountName
    ) async throws(NodeFailure) -> CurrencyBalance {
        let question = Self.object([("code", "\(contract)"), ("account", "\(account)"), ("symbol", "\(code)")])
        let bytes = try await call("get_currency_balance", question)
        return try Self.reading(CurrencyBalance(bytes, of: code))
    }

    /// Sends a signed transaction, once.
    package func push(_ packed: [UInt8], _ signature: KeyText) async -> PushOutcome {
        guard let id = try? Transaction.id(of: packed) else { return .notSent("SHA-256 is not available") }
        let body = JSON.object([
            JSON.Member("signatures", .array([.string(signature.description)])),
            JSON.Member("compression", .number("0")),
            JSON.Member("packed_context_free_data", .string("")),
            JSON.Member("packed_trx", .string(Hex.encode(packed))),
        ])
        do throws(NodeFailure) {
            let bytes = try await call("push_transaction", body)
            switch try Self.reading(PushAnswer(bytes, id: id)) {
            case .executed: return .executed
            case .failed(let words): return .refused(NodeRefusal(status: 200, code: nil, text: words))
            }
        } catch {
            switch error {
            case .refused(let refusal) where refusal.code != nil: return .refused(refusal)
            case .refused(let refusal): return .unknown("HTTP \(refusal.status): \(refusal.text.quoted())")
            case .unreachable(let words): return .notSent(words)
            case .cancelled: return .unknown("the request was cancelled")
            case .noAnswer(let words): return .unknown(words)
            case .malformed(let words): return .unknown(Phrase(verbatim: words))
            case .wrongChain, .unusableABI: return .unknown("the node belongs to another chain")
            }
        }
    }

    // MARK: Requests

    private static func object(_ members: [(String, String)]) -> JSON {
        .object(members.map { JSON.Member($0.0, .string($0.1)) })
    }

    private static func reading<Value>(
        _ answer: @autoclosure () throws(Malformed) -> Value,
        orElse failure: (String) -> NodeFailure = NodeFailure.malformed
    ) throws(NodeFailure) -> Value {
        try translating({ (error: Malformed) in failure(error.text) }, answer())
    }

    /// Sends a question and returns the body of the answer.
    private func call(_ name: String, _ question: JSON) async throws(NodeFailure) -> [UInt8] {
        guard let address = WebAddress("\(base)/v1/chain/\(name)") else {
            throw .unreachable("\(base) is not an address")
        }
        let response = try await session.run(
            .post(question.bytes, to: address, userAgent: userAgent, maximumLength: NodeAnswer.maximumCount),
            orThrow: NodeFailure.init
        )
        if (200...299).contains(response.status) { return response.body }
        if let refusal = try? NodeRefusal(status: response.status, response.body) { throw .refused(refusal) }
        guard response.status != 404 else {
            throw .refused(NodeRefusal(status: 404, code: nil, text: "the node has no \(name)"))
        }
        throw .noAnswer("HTTP \(response.status) without the error object of a node")
    }
}
