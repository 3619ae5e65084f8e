// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Dispatch
import Synchronization
import Text

/// The values that an app gives when it starts a workflow. Each is used once.
struct GivenValues: Sendable {
    var pin: SecretBox?
    var newPIN: SecretBox?
    var words: SecretBox?
}

/// The user of a workflow: asks the delegate of the app.
final class DelegateUser: WalletUser {
    /// Unchecked: the references cross threads, but the delegates are used on the callback queue alone.
    private struct Delegates: @unchecked Sendable {
        let flow: any OstWorkFlowCallbackDelegate
        let card: (any OstCardDelegate)?
    }

    private let delegates: Delegates
    private let queue: DispatchQueue
    private let type: OstWorkflowType
    private let given: GivenValues
    private let insertion: VirtualInsertion?
    /// Why the workflow was cancelled here.
    private let ending = Mutex<OstError?>(nil)

    init(
        _ delegate: any OstWorkFlowCallbackDelegate,
        _ queue: DispatchQueue,
        _ type: OstWorkflowType,
        _ given: GivenValues = GivenValues(),
        _ insertion: VirtualInsertion? = nil
    ) {
        delegates = Delegates(flow: delegate, card: delegate as? any OstCardDelegate)
        self.queue = queue
        self.type = type
        self.given = given
        self.insertion = insertion
    }

    /// Whether the app answers the questions of `OstCardDelegate`.
    private var asksForCard: Bool { delegates.card != nil }

    // MARK: The end

    func report(_ result: Result<FlowResult, ClientError>) {
        let ending = ending.withLock { $0 }
        let context: OstWorkflowContext
        var (entity, error): (OstContextEntity?, OstError?) = (nil, nil)
        switch result {
        case .success(let flow):
            context = OstWorkflowContext(flow.context, type)
            entity = flow.entity.map(OstContextEntity.init)
            if let reason = flow.error {
                // badged does not know the reason of a cancellation by this library.
                let isOurs = reason.code == "USER_CANCELED" && reason.change == nil
                error = isOurs ? ending ?? OstError(reason) : OstError(reason)
            }
        case .failure(let reason):
            context = OstWorkflowContext(workflowId: "", workflowType: type)
            error = OstError(reason)
        }
        call { [entity, error] flow, _ in
            if let entity {
                flow.flowComplete(workflowContext: context, ostContextEntity: entity)
            } else {
                flow.flowInterrupted(workflowContext: context, error: error ?? OstError("", .unknown))
            }
        }
    }

    /// Reports that a workflow is not started.
    func refuse(_ code: OstErrorCodes.OstErrorCode, _ message: String) {
        let context = OstWorkflowContext(workflowId: "", workflowType: type)
        let error = OstError("", code, message: message)
        call { flow, _ in flow.flowInterrupted(workflowContext: context, error: error) }
    }

    /// Notes why the workflow is cancelled; the first reason counts.
    private func end(_ code: OstErrorCodes.OstErrorCode, _ message: String) {
        note(OstError("", code, message: message))
    }

    private func note(_ error: OstError) { ending.withLock { if $0 == nil { $0 = error } } }

    /// Ends a workflow that shows or asks what only an `OstCardDelegate` can take.
    private func endWithoutCardDelegate(_ subject: String) {
        end(
            .unsupportedWorkflow,
            "\(subject): let the delegate conform to OstCardDelegate, or set the card up with badgectl wallet setup"
        )
    }

    // MARK: Calls

    private func call(_ body: @escaping @Sendable (any OstWorkFlowCallbackDelegate, (any OstCardDelegate)?) -> Void) {
        queue.async { [delegates] in body(delegates.flow, delegates.card) }
    }

    /// Calls a callback that gets a delegate for the answer, and waits for the answer.
    private func ask<Answer: Sendable>(
        _ body:
            @escaping @Sendable (
                any OstWorkFlowCallbackDelegate, (any OstCardDelegate)?, AnswerDelegate<Answer>
            ) -> Void
    ) async -> Answer? {
        let shot = OneShot<AnswerDelegate<Answer>.Reply>()
        call { flow, card in body(flow, card, AnswerDelegate(shot)) }
        switch await shot.value(whenCancelled: .none) {
        case .answer(let answer): return answer
        case .cancelled(let error):
            note(error)
            return nil
        case .none: return nil
        }
    }

    // MARK: WalletUser

    func insertCard(error: String?, reader: String?) async {
        call { _, card in card?.insertCard(error: error, reader: reader) }
        if error == nil { await insertion?.insert() }
    }

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        let userID = question.userID ?? ""
        switch question.kind {
        case .pin:
            if type == .setupDevice, !asksForCard, let card = question.reader.card?.keycard, card.keyUID == nil {
                endWithoutCardDelegate("the card has no keys, and the app cannot ask their words back")
                return nil
            }
            if question.error != nil || question.last?.outcome == .wrong {
                return await ask { flow, _, answer in flow.invalidPin(userID, delegate: answer) }
            }
            if let pin = given.pin?.take() { return SecretBox(pin) }
            return await ask { flow, _, answer in flow.getPin(userID, delegate: answer) }
        case .newPIN:
            let error = question.error
            if error == nil, let pin = given.newPIN?.take() { return SecretBox(pin) }
            if asksForCard {
                return await ask { _, card, answer in card?.getNewPin(userID, error: error, delegate: answer) }
            }
            guard type == .setupDevice || type == .authorizeDeviceWithMnemonics else {
                end(.pinValidationFailed, "the card asks for a new PIN again; start the workflow again")
                return nil
            }
            // The PUK follows the PIN, so the card would be set up with a PUK that nobody knows.
            endWithoutCardDelegate("the card is new, and the app cannot show its PUK")
            return nil
        case .puk:
            guard asksForCard else {
                let advice = "unblock it with the PUK: badgectl wallet unblock"
                end(.maxUserValidatedCountReached, "the PIN is blocked; \(advice)")
                return nil
            }
            let left = question.triesLeft
            return await ask { _, card, answer in card?.getPuk(userID, retryCounter: left, delegate: answer) }
        case .pairingPassword:
            guard asksForCard else {
                end(.notPaired, "the card has a pairing password of its own; use it with badgectl wallet first")
                return nil
            }
            return await ask { _, card, answer in card?.getPairingPassword(userID, delegate: answer) }
        case .newPUK, .duressPIN, .can:
            end(.unexpectedState, "badged asks for the \(question.kind.rawValue)")
            return nil
        }
    }

    func register(_ device: DeviceRegistration) async -> JSON? {
        guard device.error == nil else {
            end(.invalidAPIResponse, device.error ?? "")
            return nil
        }
        let parameters = device.apiParams
        return await ask { flow, _, answer in flow.registerDevice(parameters.dictionary, delegate: answer) }
    }

    func verify(_ data: DataToVerify) async -> Bool {
        let (context, entity) = (OstWorkflowContext(data.context, type), OstContextEntity(data.verified))
        let consent: Bool? = await ask { flow, _, answer in
            flow.verifyData(workflowContext: context, ostContextEntity: entity, delegate: answer)
        }
        return consent ?? false
    }

    func show(_ wallet: PaperWallet) async -> Bool {
        guard asksForCard else {
            endWithoutCardDelegate("the card has no keys, and the app cannot ask their words back")
            return false
        }
        let words = wallet.mnemonics
        await withCheckedContinuation { continuation in
            call { flow, _ in
                flow.showPaperWallet(mnemonics: words)
                continuation.resume()
            }
        }
        return true
    }

    func words(_ question: WordsQuestion) async -> SecretBox? {
        let error = question.error
        let words: [String]?
        switch question.wanted {
        case .positions(let positions):
            guard asksForCard else {
                endWithoutCardDelegate("the app cannot ask the words back")
                return nil
            }
            words = await ask { _, card, answer in
                card?.verifyMnemonics(positions: positions, error: error, delegate: answer)
            }
        case .all(let count):
            if error == nil, let given = given.words?.take() { return SecretBox(given) }
            guard asksForCard else {
                end(.invalidMnemonics, error ?? "the words were used before")
                return nil
            }
            words = await ask { _, card, answer in card?.getMnemonics(count: count, error: error, delegate: answer) }
        }
        return words.map(Self.secret)
    }

    func show(_ puk: NewPUK) async -> Bool {
        guard asksForCard else {
            endWithoutCardDelegate("the app cannot show the PUK")
            return false
        }
        let digits = puk.puk
        let consent: Bool? = await ask { _, card, answer in card?.showPuk(digits, delegate: answer) }
        return consent ?? false
    }

    func keep(_ key: SessionKey) async -> Bool {
        guard asksForCard else {
            end(.unsupportedWorkflow, "the app does not keep keys of sessions: its delegate is not an OstCardDelegate")
            return false
        }
        let consent: Bool? = await ask { _, card, answer in
            card?.keepSessionKey(address: key.address, privateKey: key.privateKey, delegate: answer)
        }
        return consent ?? false
    }

    func other(_ event: Event) async {
        switch event.message {
        case let message as PINValidated: call { flow, _ in flow.pinValidated(message.userID) }
        case let message as RequestAcknowledged:
            let (context, entity) = (OstWorkflowContext(message.context, type), OstContextEntity(message.entity))
            call { flow, _ in flow.requestAcknowledged(workflowContext: context, ostContextEntity: entity) }
        default: return
        }
    }

    static func secret(_ words: [String]) -> SecretBox { SecretBox(Secret(words.joined(separator: " ").utf8)) }
}

extension DataToVerify {
    /// The entity, and what is signed: members `signing` and `digest` show it to the user.
    fileprivate var verified: FlowEntity {
        guard let signing, let members = entity.members.members else { return entity }
        let content: JSON.Member =
            switch signing.content {
            case .message(let text): .init("message", .string(text))
            case .typedData(let data): .init("typedData", data)
            case .preimage(let bytes): .init("preimage", .string(bytes))
            }
        let shown = JSON.object([
            .init("standard", .string(signing.standard)), .init("digest", .string(signing.digest)), content,
            .init("notSigned", .array(signing.notSigned.map { .string($0) })),
        ])
        return FlowEntity(type: entity.type, members: .object(members + [.init("signing", shown)]))
    }
}
