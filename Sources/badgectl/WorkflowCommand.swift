// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Secrets

/// `badgectl change-pin`, `badgectl auth` and `badgectl agent`: performs what `WorkflowDialogue` decides.
struct WorkflowCommand {
    private enum Input: Sendable {
        case event(Event)
        case eventsEnded
        case reply(Reply, question: Int)
        case signal(Int32)
    }

    private let invocation: Invocation
    private let connection: DaemonConnection
    private let source: any SecretSource
    private let inputs: AsyncStream<Input>
    private let feed: AsyncStream<Input>.Continuation
    private var dialogue: WorkflowDialogue
    /// Number of the open question; a reply to another one is void.
    private var question = 0
    private var typed: SecretBox?
    /// `badgectl agent`: a browser's dialogue runs.
    private var isServing = false
    private var wasInterrupted = false

    @Sendable static func changePIN(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await run(invocation, .changePIN)
    }

    @Sendable static func authenticate(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await run(invocation, .authenticate(acceptsAll: invocation.options["--yes"] != nil))
    }

    @Sendable static func serveBrowsers(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await run(invocation, .serveBrowsers)
    }

    private static func run(
        _ invocation: Invocation,
        _ purpose: WorkflowPurpose
    ) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: true)
        var source: (any SecretSource)?
        if invocation.options["--pin-stdin"] != nil {
            source = StreamSource()
        } else {
            source = TerminalSource()
        }
        var command = WorkflowCommand(invocation, connection, source ?? NoSource(), purpose)
        return try await command.run()
    }

    private init(
        _ invocation: Invocation,
        _ connection: DaemonConnection,
        _ source: any SecretSource,
        _ purpose: WorkflowPurpose
    ) {
        (self.invocation, self.connection, self.source) = (invocation, connection, source)
        (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        dialogue = WorkflowDialogue(wanted: invocation.options["--reader"], purpose: purpose)
    }

    private mutating func run() async throws(Failure) -> ExitStatus {
        Signals.handle { [feed] in feed.yield(.signal($0)) }
        Task { [connection, feed] in
            for await event in connection.events { feed.yield(.event(event)) }
            feed.yield(.eventsEnded)
        }
        do throws(ClientError) {
            // The list first: what can be said about readers when a card is missing depends on it.
            try await connection.send("GET_READER_LIST")
            try await start()
        } catch {
            throw Failure(error)
        }
        for await input in inputs {
            for effect in effects(of: input) {
                if case .end(let failure) = effect {
                    if goesOn(after: failure, input) { continue }
                    if let failure { throw failure }
                    return .done
                }
                do throws(ClientError) {
                    try await perform(effect)
                } catch .closed {
                    // The end of the events says it too, after what came before it.
                    continue
                } catch {
                    throw Failure(error)
                }
            }
        }
        return .done
    }

    private func start() async throws(ClientError) {
        let reader = invocation.options["--reader"]
        switch dialogue.purpose {
        case .changePIN: try await connection.startChangePIN(reader: reader)
        case .authenticate:
            try await connection.startAuthentication(
                tcTokenURL: invocation.operand ?? "",
                reader: reader,
                developerMode: invocation.options["--developer-mode"] != nil
            )
        case .serveBrowsers: try await connection.setUserInterface(true)
        }
    }

    /// Is the next browser waited for after the end of a dialogue?
    private mutating func goesOn(after failure: Failure?, _ input: Input) -> Bool {
        guard dialogue.purpose == .serveBrowsers, isServing, !wasInterrupted else { return false }
        if case .eventsEnded = input { return false }
        isServing = false
        dialogue = dialogue.renewed()
        if let failure { say(([failure.text] + (failure.hint.map { ["hint: \($0)"] } ?? [])).joined(separator: "\n")) }
        say(Self.waiting)
        return true
    }

    private static let waiting = "Waiting for browsers. Ctrl-C ends it."

    /// What concerns the agent between dialogues; nil: it is the dialogue's.
    private mutating func agentEffects(of message: ServerMessage) -> [WorkflowDialogue.Effect]? {
        guard dialogue.purpose == .serveBrowsers else { return nil }
        switch message {
        case .authStarted:
            isServing = true
            return [.say("A browser asks you to prove who you are.")]
        case .userInterface(true, nil): return [.say(Self.waiting)]
        case .showUI: return [.say("A browser asks this program to show itself. Here it is.")]
        default: return nil
        }
    }

    private mutating func effects(of input: Input) -> [WorkflowDialogue.Effect] {
        switch input {
        case .event(let event):
            if invocation.wantsJSON { Output.line(event.text) }
            return agentEffects(of: event.message) ?? dialogue.handle(.message(event.message))
        case .eventsEnded: return dialogue.handle(.connectionEnded(connection.ending ?? .closed))
        case .signal(let number):
            wasInterrupted = true
            if dialogue.purpose == .serveBrowsers, !isServing {
                return [.end(Failure(.interrupted(number), "interrupted: browsers find nobody to ask now"))]
            }
            return dialogue.handle(.signal(number))
        case .reply(let reply, let number):
            // The answer to a question that is void meanwhile goes nowhere; its secret is wiped with it.
            guard number == question else { return [] }
            switch reply {
            case .secret(let secret):
                typed = secret
                return dialogue.handle(.answered)
            case .confirmed: return dialogue.handle(.answered)
            case .text(let text): return dialogue.handle(.decided(text))
            case .ended: return dialogue.handle(.inputEnded)
            case .malformed(let line): return dialogue.handle(.malformedInput(line: line))
            case .noTerminal: return dialogue.handle(.noTerminal)
            case .calledOff: return []
            }
        }
    }

    private mutating func perform(_ effect: WorkflowDialogue.Effect) async throws(ClientError) {
        switch effect {
        case .say(let text): say(text)
        case .ask(let kind): ask { await $0.ask(kind) }
        case .askToGoOn: ask { await $0.askToGoOn() }
        case .callOff:
            question += 1
            source.callOff()
        case .submit(let kind):
            guard let secret = typed?.take() else { return }
            typed = nil
            try await connection.enter(kind, secret)
        case .submitOnKeypad(let kind): try await connection.enter(kind, nil)
        case .insertCard(let reader): try await connection.setCard(in: reader)
        case .continueWorkflow: try await connection.continueWorkflow()
        case .getCertificate: try await connection.askForCertificate()
        case .askForConsent: ask { await $0.askForConsent() }
        case .setAccessRights(let names): try await connection.setAccessRights(names)
        case .accept: try await connection.accept()
        case .cancel: try await connection.cancel()
        case .end: return
        }
    }

    private mutating func ask(_ body: @escaping @Sendable (any SecretSource) async -> Reply) {
        question += 1
        Task { [source, feed, question] in feed.yield(.reply(await body(source), question: question)) }
    }

    /// For people: on standard output, which with `--json` belongs to the messages; scripts hear nothing then.
    private func say(_ text: String) {
        if !invocation.wantsJSON {
            Output.line(text)
        } else if invocation.options["--pin-stdin"] == nil {
            Output.note(text)
        }
    }
}
