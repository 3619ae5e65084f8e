// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Text

/// The workflow to which a message belongs: `workflowContext`.
struct WorkflowContext: Sendable, Equatable {
    /// A UUID; nil if no workflow was started.
    let id: String?
    /// The name of the workflow; nil if the client has named none.
    let type: String?

    func write(to object: inout JSONWriter) {
        object.object("workflowContext") { context in
            context.member("workflowId", id)
            context.member("workflowType", type)
        }
    }
}

/// What a workflow is about: `contextEntity`.
struct ContextEntity: Sendable, Equatable {
    /// Such as `device`.
    let type: String
    var members: [JSON.Member]

    func write(to object: inout JSONWriter) {
        object.object("contextEntity") { entity in
            entity.member("entityType", type)
            entity.member("entity", .object(members))
        }
    }

    /// The same entity with further members.
    func adding(_ more: [JSON.Member]) -> ContextEntity { ContextEntity(type: type, members: members + more) }
}

extension WrittenMessage {
    /// A message with the entity of its workflow.
    init(_ msg: StaticString, _ context: WorkflowContext, _ entity: ContextEntity) {
        self.init(msg) { object in
            context.write(to: &object)
            entity.write(to: &object)
        }
    }
}

struct FlowInterruptedMessage: Message {
    static let name: StaticString = "FLOW_INTERRUPTED"
    let context: WorkflowContext
    let failure: Failure

    func write(to object: inout JSONWriter, _ level: APILevel) {
        context.write(to: &object)
        object.object("error") { error in
            error.member("code", failure.walletCode.rawValue)
            error.member("internalCode", failure.internalCode)
            error.member("message", failure.walletText)
            if let change = failure.change { error.member("change", change) }
        }
    }
}
