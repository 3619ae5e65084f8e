// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import Text

/// One command of the protocol. The form of its method decides when it is answered: at once, after work for which the
/// next lines wait (`async`), or by a workflow that the `Reply` starts.
package struct CommandSpec: Sendable {
    package typealias Method = @Loop (Call) throws(Failure) -> Reply
    package typealias AsyncMethod = @Loop (Call) async throws(Failure) -> Reply
    package typealias Refusal = @Loop (Failure, Session) -> Reply

    enum Form: Sendable {
        case now(Method)
        case later(AsyncMethod)
    }

    /// The name of the command, `cmd`.
    package private(set) var name: String
    /// Other names of the command, which mean the same.
    let aliases: [String]
    /// The name of its answer; nil if it has none of its own, such as an answer to a prompt.
    package let answer: StaticString?
    /// The lowest API level that has the command.
    package let level: APILevel
    /// The permissions that the client needs.
    package let permission: Permissions
    /// Whether the command is refused with BAD_STATE while the session runs a workflow.
    package let isForIdle: Bool
    let form: Form
    private let ownRefusal: Refusal?

    private init(
        _ name: String,
        _ aliases: [String],
        _ answer: StaticString?,
        _ level: APILevel,
        _ permission: Permissions,
        _ isForIdle: Bool,
        _ refusal: Refusal?,
        _ form: Form
    ) {
        self.name = name
        self.aliases = aliases
        self.answer = answer
        self.level = level
        self.permission = permission
        self.isForIdle = isForIdle
        self.form = form
        ownRefusal = refusal
    }

    /// The command under another of its names.
    func named(_ name: String) -> CommandSpec {
        var spec = self
        spec.name = name
        return spec
    }

    /// The answer to the command when it has failed, or the final message of its workflow.
    @Loop func refusal(_ failure: Failure, _ session: Session) -> Reply {
        ownRefusal?(failure, session) ?? Reply(answer ?? "INTERNAL_ERROR") { $0.member("error", failure.message) }
    }

    package init(
        _ name: String,
        aliases: [String] = [],
        _ answer: StaticString? = nil,
        level: APILevel = .one,
        permission: Permissions,
        isForIdle: Bool = false,
        refusal: Refusal? = nil,
        _ method: @escaping Method
    ) {
        self.init(name, aliases, answer, level, permission, isForIdle, refusal, .now(method))
    }

    package init(
        _ name: String,
        aliases: [String] = [],
        _ answer: StaticString? = nil,
        level: APILevel = .one,
        permission: Permissions,
        isForIdle: Bool = false,
        refusal: Refusal? = nil,
        _ method: @escaping AsyncMethod
    ) {
        self.init(name, aliases, answer, level, permission, isForIdle, refusal, .later(method))
    }

    /// Makes a command that answers prompts. The open prompt accepts the value, or refuses the command with BAD_STATE.
    package init(answering name: String, permission: Permissions = .cards) {
        self.init(name, permission: permission) { call throws(Failure) in
            guard let prompt = call.session.workflow?.openPrompt else { throw .badState }
            try prompt.receive(call)
            return .none
        }
    }
}

/// A command that a client has sent, as its method gets it.
@Loop package struct Call {
    package let session: Session
    package let spec: CommandSpec
    /// Valid until the method has returned.
    package let arguments: Arguments
    package let command: Command

    init(_ session: Session, _ spec: CommandSpec, _ command: Command) {
        self.session = session
        self.spec = spec
        self.command = command
        arguments = Arguments(command)
    }

    /// The name of the command, `cmd`.
    package var name: String { spec.name }

    /// The user of the client.
    package var uid: UInt32 {
        get throws(Failure) {
            guard let uid = session.uid else {
                throw Failure(.internalError, "the kernel does not report the user of this client")
            }
            return uid
        }
    }

    /// Writes the answer of the command.
    package func reply(_ body: @escaping (inout JSONWriter) -> Void = { _ in }) -> Reply {
        Reply(WrittenMessage(spec.answer ?? "INTERNAL_ERROR", body))
    }

    /// For an answer that is sent after the method has returned, by `Session.answer`.
    package var request: SavedRequest { SavedRequest(command) }
}

/// What a method answers.
@Loop package struct Reply {
    enum Content {
        case none
        case message(any Message)
        case workflow(String, any Message, FinalMessage?, Body)
    }

    /// The dialogue of a workflow. It returns the final message, or throws why there is none.
    package typealias Body = @Loop (Workflow) async throws(Failure) -> Reply
    /// Makes the final message of a failure.
    package typealias FinalMessage = @Loop (Failure) -> Reply

    let content: Content
    /// Called when the answer is sent.
    let then: (@Loop () -> Void)?

    private init(_ content: Content, then: (@Loop () -> Void)? = nil) { (self.content, self.then) = (content, then) }

    /// `then` is called when the answer is sent, for messages that follow it.
    package init(_ message: some Message, then: (@Loop () -> Void)? = nil) {
        self.init(.message(message), then: then)
    }

    package init(_ name: StaticString, _ body: @escaping (inout JSONWriter) -> Void) {
        self.init(WrittenMessage(name, body))
    }

    /// There is no direct answer.
    package static var none: Reply { Reply(.none) }

    /// Starts a workflow.
    /// - Parameters:
    ///   - name: the name in STATUS.
    ///   - first: the first message.
    ///   - refusal: makes the final message of a failure; nil: that of the command does.
    ///   - body: the dialogue.
    /// - Returns: the reply that starts the workflow.
    package static func workflow(
        _ name: String,
        announcedBy first: some Message,
        refusal: FinalMessage? = nil,
        _ body: @escaping Body
    ) -> Reply {
        Reply(.workflow(name, first, refusal, body))
    }
}
