// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Concurrency
import Host
import Server
import Text
import Wire

/// WALLET_INIT, WALLET_UNBIND and the operations. docs/protocol/wallet.md, MYKEY operations.
extension WalletFeature {
    var operationCommands: [CommandSpec] {
        func spec(_ name: String, _ perform: @escaping @Loop (Session, Command) -> CommandOutcome) -> CommandSpec {
            CommandSpec(name, permission: [.cards, .wallet], perform: perform)
        }
        return [
            spec("WALLET_INIT") { [self] session, command in initialize(session, command) },
            spec("WALLET_UNBIND") { [self] session, command in unbind(session, command) },
            operation("WALLET_AUTHORIZE", .authorize, OperationRequest.authorize),
            operation("WALLET_SIGN", .sign, OperationRequest.sign),
            operation("WALLET_TRANSFER", .transfer, OperationRequest.transfer),
            operation("WALLET_CONTRACT", .contract, OperationRequest.contract),
            spec("WALLET_SIMPLEWALLET") { [self] session, command in simpleWallet(session, command) },
        ]
    }

    private var callbacks: CallbackRules { CallbackRules(allowsLoopbackHTTP: antelope.allowsHTTPCallbacks) }

    // MARK: The dapp

    private func initialize(_ session: Session, _ command: Command) -> CommandOutcome {
        guard session.workflow == nil else { return .badState }
        let dapp: DApp
        do throws(OperationFailure) {
            dapp = try DApp(Members(command))
        } catch {
            session.answer(WalletNotReadyMessage(error: error.message), to: command)
            return .answered
        }
        session.answerLater(to: command) { [self] in
            do throws(OperationFailure) {
                var binding: Bindings.Binding?
                if let key = try bindingKey(dapp, session) {
                    binding = try await Bindings(services.store).binding(key)
                }
                dapps[ObjectIdentifier(session)] = dapp
                return WalletReadyMessage(
                    dapp: dapp,
                    chain: antelope.chain,
                    hasNode: antelope.node != nil,
                    binding: binding
                )
            } catch {
                return WalletNotReadyMessage(error: error.message)
            }
        }
        return .answered
    }

    /// Forgets the binding of the dapp, for instance after its card was lost.
    private func unbind(_ session: Session, _ command: Command) -> CommandOutcome {
        guard session.workflow == nil else { return .badState }
        let dapp = dapps[ObjectIdentifier(session)]
        session.answerLater(to: command) { [self] in
            do throws(OperationFailure) {
                guard let dapp, let key = try bindingKey(dapp, session) else {
                    throw OperationFailure(.notReady, "Send WALLET_INIT with mode MYKEY first")
                }
                return WalletUnboundMessage(account: try await Bindings(services.store).remove(key)?.account)
            } catch {
                return WalletUnboundMessage(account: nil, error: error.message)
            }
        }
        return .answered
    }

    /// The place of a dapp in the table of bindings; nil in a mode without bindings.
    private func bindingKey(_ dapp: DApp, _ session: Session) throws(OperationFailure) -> Bindings.Key? {
        guard let appKey = dapp.appKey else { return nil }
        return try Bindings.Key(uid: session.uid, appKey: appKey, uuid: dapp.uuid)
    }

    // MARK: Operations

    private typealias Reading = @Sendable (DApp, Members, CallbackRules) throws(OperationFailure) -> OperationRequest

    private func operation(
        _ name: String,
        _ kind: OperationRequest.Kind,
        _ read: @escaping Reading
    ) -> CommandSpec {
        CommandSpec(name, permission: [.cards, .wallet]) { [self] session, command in
            guard session.workflow == nil else { return .badState }
            do throws(OperationFailure) {
                guard let dapp = dapps[ObjectIdentifier(session)] else {
                    throw OperationFailure(.notReady, "Send WALLET_INIT first in this connection")
                }
                let request = try read(dapp, Members(command), callbacks)
                try start(name, request, try bindingKey(dapp, session), session, command)
            } catch {
                session.answer(WalletResultMessage(kind, error), to: command)
            }
            return .answered
        }
    }

    private func simpleWallet(_ session: Session, _ command: Command) -> CommandOutcome {
        guard session.workflow == nil else { return .badState }
        var (kind, link) = (OperationRequest.Kind.simpleWallet, String?.none)
        do throws(OperationFailure) {
            let members = Members(command)
            let parameter = try OperationRequest.parameter(members["param"])
            (kind, link) = (OperationRequest.kind(parameter), OperationRequest.link(parameter))
            var request = try OperationRequest.simpleWallet(parameter, members, callbacks, now: antelope.time())
            request.readerName = try members.text("reader", 1...255)
            try start("WALLET_SIMPLEWALLET", request, nil, session, command)
        } catch {
            var message = WalletResultMessage(kind, error)
            message.link = link
            session.answer(message, to: command)
        }
        return .answered
    }

    private func start(
        _ name: String,
        _ request: OperationRequest,
        _ bindingKey: Bindings.Key?,
        _ session: Session,
        _ command: Command
    ) throws(OperationFailure) {
        if let refusal = session.workflowRefusal() { throw OperationFailure(.failed, refusal) }
        if case .value(let flag) = command.bool("status") { session.wantsStatus = flag }
        session.start(name, announcedBy: WalletStartedMessage(kind: request.body.kind)) {
            [services, antelope] workflow in
            let operation = WalletOperation(workflow, services, antelope, request, bindingKey)
            let result = await operation.run()
            let isNotable = result.code != .done && result.code != .cancelled
            session.server.log(isNotable ? .notice : .info, "\(session.name): \(name) ended, \(result.code.rawValue)")
            return result
        }
    }
}
