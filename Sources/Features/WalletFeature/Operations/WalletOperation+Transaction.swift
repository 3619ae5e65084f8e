// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Concurrency
import Crypto
import HTTP
import Server
import Text

/// TRANSFER and CONTRACT: the card signs a transaction, and the node executes it.
extension WalletOperation {
    func transact() async throws(Failure) -> WalletResultMessage {
        guard let account else { throw request.missingAccount }
        let permission = try permission
        let node = try connect()
        defer { node.session.close() }
        // A node of another chain is refused before any of its data is used.
        _ = try await asking(await node.node.info())
        let known = try await self.known(account, node.node)
        try check(permission, of: known)
        let plan = try await plan(account, permission, node.node)
        let signed = try await sign(plan, permission, known, node.node)
        let id = try cryptography(Transaction.id(of: signed.packed))
        guard !workflow.isCancelled else { throw .cancelled }
        transactionID = id
        workflow.progress(80)
        switch await node.node.push(signed.packed, signed.signature.text) {
        case .executed: break
        case .refused(let refusal):
            if refusal.isOverdrawn {
                throw Failure(operation: .balanceTooSmall, "The node reports: \(refusal.text.quoted())")
            }
            if refusal.isExpired || refusal.isDuplicate {
                throw Failure(operation: .outcomeUnknown, "The node reports: \(refusal.text.quoted())")
            }
            throw Failure(operation: .failed, "The node refuses the transaction: \(refusal.text.quoted())")
        case .notSent(let words): throw Failure(operation: .failed, "The transaction was not sent: \(words)")
        case .unknown(let words):
            throw Failure(
                operation: .outcomeUnknown,
                "It is not known whether the transaction was executed (\(words)): look for txId before you repeat it"
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

    /// The packed actions of a transaction, which stay the same if the transaction needs a new time.
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
    ) async throws(Failure) -> Plan {
        var abis: [AccountName: ABI] = [:]
        var actions: [ShownRequest.ShownAction] = []
        for (index, wanted) in try wantedActions(of: account).enumerated() {
            let place = "actions[\(index)]"
            let abi: ABI
            if let found = abis[wanted.account] {
                abi = found
            } else {
                abi = try await self.abi(of: wanted.account, node)
                abis[wanted.account] = abi
            }
            guard let type = try valid("actions", abi.type(of: wanted.name)) else {
                throw Failure(operation: .badField, "\(place): \(wanted.account) has no action \(wanted.name)")
            }
            let (data, decoded) = try await Pool.run(orIfCancelled: Failure.cancelled) { () throws(Failure) in
                // The packed data are compared with the wanted ones.
                let data = try valid("data", abi.pack(wanted.data, as: type))
                // The user sees what is in the bytes, not what the dapp has sent.
                return (data, try valid("data", abi.unpack(data, as: type)))
            }
            let level = PermissionLevel(actor: account, permission: permission)
            let action = AntelopeAction(account: wanted.account, name: wanted.name, authorization: [level], data: data)
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
    ) async throws(Failure) -> Plan {
        let begin = services.now()
        let info = try await asking(await node.info())
        let seconds = try valid("head_block_time", info.time.seconds)
        let (expiration, isTooLate) = seconds.addingReportingOverflow(Self.life)
        guard !isTooLate else { throw Failure(operation: .failed, "The node has a time after 2106") }
        let transaction = Transaction(
            expiration: expiration,
            reference: info.reference,
            actions: actions.map(\.action)
        )
        let packed = transaction.packed
        let read = try valid("transaction", Transaction(packed: packed))
        guard read == transaction, packed.count <= Transaction.maximumCount else {
            throw Failure(operation: .badField, "The transaction is too large")
        }
        let digest = try cryptography(Transaction.digest(of: packed, on: antelope.chain))
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
    private func wantedActions(of account: AccountName) throws(Failure) -> [OperationRequest.RequestedAction] {
        switch request.body {
        case .authorize, .sign: return []
        case .contract(let actions): return actions
        case .transfer(let transfer):
            let quantity = try valid(
                "amount",
                Asset(decimal: transfer.amount, code: transfer.code, precision: transfer.decimals)
            )
            let data = JSON.object([
                JSON.Member("from", .string("\(account)")), JSON.Member("to", .string("\(transfer.to)")),
                JSON.Member("quantity", .string("\(quantity)")), JSON.Member("memo", .string(transfer.memo)),
            ])
            let name = try valid("transfer", AccountName("transfer"))
            return [OperationRequest.RequestedAction(account: transfer.contract, name: name, data: data)]
        }
    }

    /// Checks a transfer of a token: its decimals, the memo, and the balance of the account.
    private func check(
        _ data: JSON,
        of action: AntelopeAction,
        _ account: AccountName,
        _ node: AntelopeNode
    ) async throws(Failure) {
        guard "\(action.name)" == "transfer", let text = data["quantity"]?.string, let quantity = try? Asset(text)
        else {
            return
        }
        let (code, contract) = (quantity.symbol.code, action.account)
        let stats = try await asking(await node.stats(of: code, at: contract))
        guard let symbol = stats.symbol else {
            throw Failure(operation: .badField, "\(contract) has no token \(code)")
        }
        guard symbol == quantity.symbol else {
            throw Failure(
                operation: .badField,
                "\(quantity) must have \(symbol.precision) decimals, as all amounts of \(code) at \(contract)"
            )
        }
        if let memo = data["memo"]?.string, memo.utf8.count > 256 {
            throw Failure(operation: .badField, "memo has more than 256 bytes")
        }
        guard data["from"]?.string == "\(account)" else { return }
        let found = try await asking(await node.balance(of: account, in: code, at: contract))
        let balance = found.balance?.amount ?? 0
        guard balance >= quantity.amount else {
            let words: Phrase = found.balance.map { "\($0)" } ?? "no \(code)"
            throw Failure(operation: .balanceTooSmall, "\(account) has \(words), which is less than \(quantity)")
        }
    }

    /// Shows a transaction, and signs it. It is shown again if it is too old when the card is ready.
    private func sign(
        _ first: Plan,
        _ permission: AccountName,
        _ known: NodeAccount,
        _ node: AntelopeNode
    ) async throws(Failure) -> (packed: [UInt8], signature: CompactSignature) {
        try await approve(first.shown)
        var plan = first
        let signature = try await withCard(permission, known) { dialogue, card throws(Failure) in
            while self.services.now() > plan.lastMoment {
                let next = try await self.dated(plan.actions, permission, node)
                let error: Phrase = "The transaction was too old to sign, and has a new time: check it again"
                _ = try await dialogue.ask(WalletRequestPrompt(shown: next.shown, error: error, lease: card.lease))
                // Only what the user has accepted: a card may leave at the question, and this begins again.
                plan = next
            }
            return try await self.signature(of: plan.shown, dialogue, card)
        }
        return (plan.packed, signature)
    }
}
