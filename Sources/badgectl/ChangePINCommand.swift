// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Secrets

/// `badgectl change-pin`: performs what `ChangePINDialogue` decides.
struct ChangePINCommand {
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
    private var dialogue: ChangePINDialogue
    /// Number of the open question; a reply to another one is void.
    private var question = 0
    private var typed: SecretBox?

    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: true)
        var source: (any SecretSource)?
        if invocation.options["--pin-stdin"] != nil {
            source = StreamSource()
        } else {
            source = TerminalSource()
        }
        var command = ChangePINCommand(invocation, connection, source ?? NoSource())
        return try await command.run()
    }

    private init(_ invocation: Invocation, _ connection: DaemonConnection, _ source: any SecretSource) {
        (self.invocation, self.connection, self.source) = (invocation, connection, source)
        (inputs, feed) = AsyncStream.makeStream(of: Input.self)
        dialogue = ChangePINDialogue(wanted: invocation.options["--reader"])
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
            try await connection.startChangePIN(reader: invocation.options["--reader"])
        } catch {
            throw Failure(error)
        }
        for await input in inputs {
            for effect in effects(of: input) {
                if case .end(let failure) = effect {
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

    private mutating func effects(of input: Input) -> [ChangePINDialogue.Effect] {
        switch input {
        case .event(let event):
            if invocation.wantsJSON { Output.line(event.text) }
            return dialogue.handle(.message(event.message))
        case .eventsEnded: return dialogue.handle(.connectionEnded(connection.ending ?? .closed))
        case .signal(let number): return dialogue.handle(.signal(number))
        case .reply(let reply, let number):
            // The answer to a question that is void meanwhile goes nowhere; its secret is wiped with it.
            guard number == question else { return [] }
            switch reply {
            case .secret(let secret):
                typed = secret
                return dialogue.handle(.answered)
            case .confirmed: return dialogue.handle(.answered)
            case .ended: return dialogue.handle(.inputEnded)
            case .malformed(let line): return dialogue.handle(.malformedInput(line: line))
            case .noTerminal: return dialogue.handle(.noTerminal)
            case .calledOff: return []
            }
        }
    }

    private mutating func perform(_ effect: ChangePINDialogue.Effect) async throws(ClientError) {
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
