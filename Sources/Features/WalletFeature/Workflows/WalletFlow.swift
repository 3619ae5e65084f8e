// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import Host
import Server
import Text

/// One workflow of RUN_WALLET, with its members already checked.
protocol WalletWorkflow: Sendable {
    /// Runs the workflow. The result is the entity of FLOW_COMPLETE.
    @Loop func run(_ flow: WalletFlow) async throws(Failure) -> ContextEntity
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
        self.workflow = workflow
        self.services = services
        self.request = request
        self.context = context
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

    /// `user_id` and `token_id` of an entity.
    var userMembers: [JSON.Member] {
        [JSON.Member("user_id", .string(request.userID))]
            + (request.tokenID.map { [JSON.Member("token_id", .string($0))] } ?? [])
    }
}

/// RUN_WALLET.
extension WalletFeature {
    func runWallet(_ call: Call) throws(Failure) -> Reply {
        let request: WalletRequest
        let body: any WalletWorkflow
        do throws(Failure) {
            (request, body) = try WalletRequest.read(call.arguments)
        } catch {
            var error = error
            if let type = call.arguments["workflow"]?.string {
                error.details.append(JSON.Member("workflow", .string(type)))
            }
            throw error
        }
        let context = WorkflowContext(id: UUIDText.random(), type: request.type)
        let started = WrittenMessage("FLOW_STARTED") {
            context.write(to: &$0)
            $0.member("userId", request.userID)
        }
        let services = services
        func refusal(_ failure: Failure) -> Reply {
            // A workflow that has not started has no id.
            let id = failure.code == .tooManyWorkflows ? nil : context.id
            return Reply(FlowInterruptedMessage(context: WorkflowContext(id: id, type: request.type), failure: failure))
        }
        return .workflow(request.type, announcedBy: started, refusal: refusal) { workflow throws(Failure) in
            try services.refuseOtherVersions(in: request.readerName)
            let entity = try await body.run(WalletFlow(workflow, services, request, context))
            workflow.session.log(.info, "\(workflow.session.name): \(request.type) ended, success")
            return Reply(WrittenMessage("FLOW_COMPLETE", context, entity))
        }
    }
}
