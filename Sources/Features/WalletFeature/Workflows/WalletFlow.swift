// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import Host
import Server
import Text
import Wire

/// One workflow of RUN_WALLET, with its members already checked.
protocol WalletWorkflow: Sendable {
    /// Runs the workflow. The result is the entity of FLOW_COMPLETE.
    @Loop func run(_ flow: WalletFlow) async throws(WalletFailure) -> ContextEntity
}

/// The members of RUN_WALLET that do not depend on the workflow.
struct WalletRequest: Sendable {
    /// `workflowType`.
    var type: String
    var userID: String
    var tokenID: String?
    var readerName: String?
}

/// One run of a workflow: what its steps share.
@Loop final class WalletFlow {
    let workflow: Workflow
    let services: KeycardServices
    let request: WalletRequest
    let context: WorkflowContext

    init(_ workflow: Workflow, _ services: KeycardServices, _ request: WalletRequest, _ context: WorkflowContext) {
        (self.workflow, self.services, self.request, self.context) = (workflow, services, request, context)
    }

    /// The dialogue with cards.
    func dialogue(keyUID: KeycardRequirements.KeyUIDRule? = nil) -> KeycardDialogue {
        KeycardDialogue(
            services,
            workflow,
            readerName: request.readerName,
            userID: request.userID,
            keyUID: keyUID
        )
    }

    /// Asks the client for something that belongs to no card.
    func ask<P: Prompt>(_ prompt: P) async throws(WalletFailure) -> P.Answer {
        do throws(Interruption) {
            return try await workflow.ask(prompt)
        } catch {
            throw error == .timedOut ? .requestTimedOut : .userCanceled
        }
    }

    /// `user_id` and `token_id` of an entity.
    var userMembers: [JSON.Member] {
        [JSON.Member("user_id", .string(request.userID))]
            + (request.tokenID.map { [JSON.Member("token_id", .string($0))] } ?? [])
    }
}

/// RUN_WALLET.
extension WalletFeature {
    func runWallet(_ session: Session, _ command: Command) -> CommandOutcome {
        guard session.workflow == nil else { return .badState }
        var type: String?
        if case .value(let name) = command.string("workflow") { type = name }
        do throws(WalletFailure) {
            let (request, body) = try WalletRequest.read(command)
            if let refusal = session.workflowRefusal() { throw WalletFailure(.tooManyWorkflows, refusal) }
            if case .value(let flag) = command.bool("status") { session.wantsStatus = flag }
            start(request, body, in: session)
        } catch {
            let context = WorkflowContext(id: nil, type: type)
            session.answer(FlowInterruptedMessage(context: context, failure: error), to: command)
        }
        return .answered
    }

    private func start(_ request: WalletRequest, _ body: any WalletWorkflow, in session: Session) {
        let context = WorkflowContext(id: Self.uuid(), type: request.type)
        let started = FlowStartedMessage(context: context, userID: request.userID)
        session.start(request.type, announcedBy: started) { [services] workflow in
            let flow = WalletFlow(workflow, services, request, context)
            do throws(WalletFailure) {
                let entity = try await body.run(flow)
                session.server.log(.info, "\(session.name): \(request.type) ended, success")
                return FlowCompleteMessage(context: context, entity: entity)
            } catch {
                session.server.log(
                    error.code == .userCanceled ? .info : .notice,
                    "\(session.name): \(request.type) ended, \(error.code.rawValue) \(error.internalCode)"
                )
                return FlowInterruptedMessage(context: context, failure: error)
            }
        }
    }

    /// A random UUID. RFC 9562 5.4.
    private static func uuid() -> String {
        var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        return [0..<4, 4..<6, 6..<8, 8..<10, 10..<16].map { Hex.encode(bytes[$0]) }.joined(separator: "-")
    }
}
