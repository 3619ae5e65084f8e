// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Concurrency
import Host
import Server
import Text

/// WALLET_INIT, WALLET_UNBIND and the operations. docs/protocol/wallet.md, MYKEY operations.
extension WalletFeature {
    var operationCommands: [CommandSpec] {
        [
            command("WALLET_INIT", WalletReadyMessage.name, initialize) { failure, _ in
                Reply(WalletReadyMessage.name) { $0.member("error", failure.operationText) }
            },
            command("WALLET_UNBIND", "WALLET_UNBOUND", unbind) { failure, _ in
                Reply("WALLET_UNBOUND") { object in
                    object.member("error", failure.operationText)
                    object.member("account", String?.none)
                }
            },
            operation("WALLET_AUTHORIZE", .authorize, OperationRequest.authorize),
            operation("WALLET_SIGN", .sign, OperationRequest.sign),
            operation("WALLET_TRANSFER", .transfer, OperationRequest.transfer),
            operation("WALLET_CONTRACT", .contract, OperationRequest.contract),
            command("WALLET_SIMPLEWALLET", WalletResultMessage.name, simpleWallet) { failure, _ in
                Reply(WalletResultMessage(.simpleWallet, failure))
            },
        ]
    }

    private func command(
        _ name: String,
        _ answer: StaticString,
        _ method: @escaping CommandSpec.AsyncMethod,
        refusal: @escaping CommandSpec.Refusal
    ) -> CommandSpec {
        CommandSpec(name, answer, permission: [.cards, .wallet], isForIdle: true, refusal: refusal, method)
    }

    private var callbacks: CallbackRules { CallbackRules(allowsLoopbackHTTP: antelope.allowsHTTPCallbacks) }

    // MARK: The dapp

    private func initialize(_ call: Call) async throws(Failure) -> Reply {
        let dapp = try DApp(call.arguments)
        var binding: Bindings.Binding?
        if let key = try bindingKey(dapp, call.session) {
            binding = try await Bindings(services.store).binding(key)
        }
        // A client that has left meanwhile must not leave its dapp to the next session.
        if !call.session.hasLeft { dapps[ObjectIdentifier(call.session)] = dapp }
        return Reply(
            WalletReadyMessage(dapp: dapp, chain: antelope.chain, hasNode: antelope.node != nil, binding: binding)
        )
    }

    /// Forgets the binding of the dapp, for instance after its card was lost.
    private func unbind(_ call: Call) async throws(Failure) -> Reply {
        guard let dapp = dapps[ObjectIdentifier(call.session)], let key = try bindingKey(dapp, call.session) else {
            throw Failure(operation: .notReady, "Send WALLET_INIT with mode MYKEY first")
        }
        let account = try await Bindings(services.store).remove(key)?.account
        return call.reply { $0.member("account", account?.description) }
    }

    /// The place of a dapp in the table of bindings; nil in a mode without bindings.
    private func bindingKey(_ dapp: DApp, _ session: Session) throws(Failure) -> Bindings.Key? {
        guard let appKey = dapp.appKey else { return nil }
        return try Bindings.Key(uid: session.uid, appKey: appKey, uuid: dapp.uuid)
    }

    // MARK: Operations

    private func operation(
        _ name: String,
        _ kind: OperationRequest.Kind,
        _ read: @escaping @Sendable (OperationRequest.Source) throws(Failure) -> OperationRequest
    ) -> CommandSpec {
        let run: CommandSpec.AsyncMethod = { [self] call throws(Failure) in
            guard let dapp = dapps[ObjectIdentifier(call.session)] else {
                throw Failure(operation: .notReady, "Send WALLET_INIT first in this connection")
            }
            let request = try read(.init(dapp: dapp, members: call.arguments, callbacks: callbacks))
            return try await workflow(call, request, try bindingKey(dapp, call.session))
        }
        return command(name, WalletResultMessage.name, run) { failure, _ in Reply(WalletResultMessage(kind, failure)) }
    }

    private func simpleWallet(_ call: Call) async throws(Failure) -> Reply {
        var (kind, link) = (OperationRequest.Kind.simpleWallet, String?.none)
        do throws(Failure) {
            let parameter = try OperationRequest.parameter(call.arguments["param"])
            kind = OperationRequest.kind(parameter)
            link = OperationRequest.link(parameter)
            var request = try OperationRequest.simpleWallet(parameter, call.arguments, callbacks, now: antelope.time())
            request.readerName = try call.arguments.optionalText("reader", 1...255)
            return try await workflow(call, request, nil)
        } catch {
            var message = WalletResultMessage(kind, error)
            message.link = link
            return Reply(message)
        }
    }

    private func workflow(
        _ call: Call,
        _ request: OperationRequest,
        _ bindingKey: Bindings.Key?
    ) async throws(Failure) -> Reply {
        var found: Bindings.Binding?
        if let bindingKey { found = try await Bindings(services.store).binding(bindingKey) }
        try request.checkAccount(found, needsBinding: bindingKey != nil)
        let binding = found
        let (name, kind, services, antelope) = (call.name, request.body.kind, services, antelope)
        // Made when the workflow starts.
        var operation: WalletOperation?
        func refusal(_ failure: Failure) -> Reply {
            Reply(operation?.result(failure) ?? WalletResultMessage(kind, failure))
        }
        let started = WrittenMessage("WALLET_STARTED") { $0.member("operation", kind.rawValue) }
        return .workflow(name, announcedBy: started, refusal: refusal) {
            workflow throws(Failure) in
            let new = WalletOperation(workflow, services, antelope, request, bindingKey, binding)
            operation = new
            let result = try await new.run()
            workflow.session.log(.info, "\(workflow.session.name): \(name) ended, \(result.code.rawValue)")
            return Reply(result)
        }
    }
}
