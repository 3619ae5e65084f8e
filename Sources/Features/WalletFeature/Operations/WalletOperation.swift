// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Cards
import Concurrency
import Crypto
import HDWallet
import HTTP
import Keycard
import Server
import Text

/// One operation of WALLET_AUTHORIZE and its siblings. docs/protocol/wallet.md, MYKEY operations.
///
/// Nothing is signed that was not shown and accepted before, and a transaction is pushed at most once.
@Loop final class WalletOperation {
    let workflow: Workflow
    let services: KeycardServices
    let antelope: AntelopeServices
    let bindings: Bindings
    let request: OperationRequest
    /// nil: there is no binding in this mode.
    let bindingKey: Bindings.Key?
    let binding: Bindings.Binding?

    var account: AccountName?
    var publicKey: KeyText?
    var transactionID: [UInt8]?
    /// The wallet of the card that has signed.
    var keyUID: [UInt8] = []
    /// The card in use.
    var card: HeldKeycard?

    /// The name of this wallet in callbacks.
    static let reference = "badged"

    init(
        _ workflow: Workflow,
        _ services: KeycardServices,
        _ antelope: AntelopeServices,
        _ request: OperationRequest,
        _ bindingKey: Bindings.Key?,
        _ binding: Bindings.Binding?
    ) {
        self.workflow = workflow
        self.services = services
        self.antelope = antelope
        self.request = request
        self.bindingKey = bindingKey
        self.binding = binding
        bindings = Bindings(services.store)
        account = request.account ?? binding?.account
    }

    /// The end of the operation, with what is known of it.
    func result(_ outcome: Failure) -> WalletResultMessage {
        var message = WalletResultMessage(request.body.kind, outcome)
        message.account = account
        message.publicKey = publicKey?.description
        message.transactionID = transactionID
        message.link = request.link
        return message
    }

    /// Runs the operation. At its end the card and its reader are free.
    func run() async throws(Failure) -> WalletResultMessage {
        workflow.progress(0)
        try services.refuseOtherVersions(in: request.readerName)
        switch request.body {
        case .authorize: return try await authorize()
        case .sign(let message): return try await sign(message)
        case .transfer, .contract: return try await transact()
        }
    }

    var permission: AccountName {
        get throws(Failure) {
            if let permission = request.permission ?? binding?.permission { return permission }
            return try valid("permission", AccountName("active"))
        }
    }

    // MARK: Steps of several operations

    func shown(
        text: String? = nil,
        chain: ChainID?,
        permission: AccountName?,
        actions: [ShownRequest.ShownAction] = [],
        expiration: AntelopeTime? = nil,
        digest: [UInt8]
    ) -> ShownRequest {
        ShownRequest(
            request: request,
            chain: chain,
            account: account,
            permission: permission,
            text: text,
            actions: actions,
            expiration: expiration,
            digest: digest
        )
    }

    func done(_ text: Phrase, _ signature: CompactSignature? = nil) -> WalletResultMessage {
        var message = result(Failure(operation: .done, text))
        message.signature = signature?.text.description
        return message
    }

    /// Sends a signature to the server of the dapp, which decides whether the operation succeeds.
    func deliver(_ body: [JSON.Member]) async throws(Failure) {
        guard let error = await post(body) else { return }
        if workflow.isCancelled {
            var cancelled = Failure.cancelled
            cancelled.change = "The server of the callback may have the signature"
            throw cancelled
        }
        throw Failure(operation: .failed, "The callback failed: \(error)", callbackError: error)
    }

    /// Posts to the callback, if there is one. Returns why it failed.
    func post(_ body: [JSON.Member]) async -> String? {
        guard let address = request.callback else { return nil }
        workflow.progress(90)
        let session = HTTPSession(antelope.network, antelope.callbackAuthorities, antelope.limits)
        defer { session.close() }
        return await CallbackPost(address: address, body: .object(body), userAgent: antelope.userAgent).send(session)
    }
}
