// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Secrets
import Synchronization

/// The person, or the script, in front of `badgectl change-pin`, `auth` and `agent`: how badged's questions are heard.
final class Person: WorkflowUser {
    private struct State {
        /// Set when the workflow is given up: how the program will end.
        var ending: Failure?
        var lastSaid = ""
        var insertions = 0
        /// `badgectl agent`: a browser's authentication runs.
        var isServing = false
    }

    /// A virtual card that falls out again and again is not put back for ever.
    private static let maximumInsertions = 10

    private let connection: DaemonConnection
    private let purpose: WorkflowPurpose
    /// The name given with `--reader`.
    private let wanted: String?
    private let source: any SecretSource
    private let output: @Sendable (String) -> Void
    private let state = Mutex(State())

    init(
        _ connection: DaemonConnection,
        _ purpose: WorkflowPurpose,
        wanted: String?,
        source: any SecretSource,
        output: @escaping @Sendable (String) -> Void
    ) {
        (self.connection, self.purpose, self.wanted) = (connection, purpose, wanted)
        (self.source, self.output) = (source, output)
    }

    /// Why it was given up; nil when nobody has.
    var ending: Failure? { state.withLock { $0.ending } }

    /// The next dialogue of the same kind.
    func beginAnew() { state.withLock { $0 = State() } }

    /// Notes a signal; true when the workflow is to be cancelled, false when nobody wants to wait for that any more.
    func interrupt(_ number: Int32) -> Bool {
        let (isFirst, isIdle) = state.withLock { state in
            let isIdle = purpose == .serveBrowsers && !state.isServing
            let text = isIdle ? "browsers find nobody to ask now" : purpose.notDone
            defer { state.ending = Failure(.interrupted(number), "interrupted: \(text)") }
            return (state.ending == nil, isIdle)
        }
        if isFirst, !isIdle { say(ChangePINWords.cancelling) }
        return isFirst
    }

    /// Once is enough.
    func say(_ text: String) {
        let isNew = state.withLock { state in
            defer { state.lastSaid = text }
            return state.lastSaid != text
        }
        if isNew { output(text) }
    }

    // MARK: WorkflowUser

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        explain(question)
        let reply = await source.ask(question.kind)
        guard case .secret(let secret) = reply else {
            giveUp(reply, wanted: "a \(question.kind.words) of \(question.kind.form)")
            return nil
        }
        say(ChangePINWords.busy(question.kind))
        return secret
    }

    func typeOnKeypad(_ question: SecretQuestion) async -> Bool {
        explain(question)
        // At once again might be for ever.
        if question.error != nil { return await goesOn() }
        say(ChangePINWords.keypad(question.kind, reader: question.reader.name))
        return true
    }

    func layCardBetter() async -> Bool {
        say("The card does not lie well: put it flat on the middle of the reader.")
        return await goesOn(
            otherwise: "the card does not lie well on the reader",
            hint: "put it flat on the middle of the reader, and try again"
        )
    }

    func agree(to request: ConsentRequest) async -> [String]? {
        var rights = request.rights
        say(ConsentWords.service(request.service, transactionInfo: rights.transactionInfo))
        say(ConsentWords.rights(rights))
        while true {
            guard purpose != .authenticate(acceptsAll: true) else { return rights.effective }
            let reply = await source.askForConsent()
            guard case .text(let text) = reply else {
                giveUp(reply, hint: "run it in a terminal, or say --yes when the service may have all it asks for")
                return nil
            }
            switch ConsentWords.decision(text, about: rights) {
            case .agreed: return rights.effective
            case .refused:
                end(Failure(.failed, "not agreed: \(purpose.notDone)", hint: "the service can be asked why"))
                return nil
            case .changed(let effective):
                rights.effective = effective
                say(ConsentWords.rights(rights))
            case .unclear: say("Type y to agree, n to end it, or numbers from the list.")
            }
        }
    }

    func insertCard(error: String?, reader: String?) async {
        if let error {
            let sentence = error.hasSuffix(".") ? error : error + "."
            return say(reader.map { "\($0): \(sentence)" } ?? sentence)
        }
        // Who may not see the readers may still use a card.
        let readers = try? await connection.readers()
        guard let shelf = shelf(among: readers ?? []), takeTurn() else {
            return say(ChangePINWords.insertCard(wanted: wanted, readers: readers))
        }
        say("Putting the card into the virtual reader \(shelf).")
        _ = try? await connection.setCard(in: shelf)
    }

    func cardLeft(reader: String) async { say(ChangePINWords.cardLeft) }

    func progress(_ percent: Int) async { if percent > 0 { say("\(percent) %") } }

    func other(_ event: Event) async {
        guard purpose == .serveBrowsers else { return }
        switch event.message {
        case .authStarted:
            state.withLock { $0.isServing = true }
            say("A browser asks you to prove who you are.")
        case .showUI: say("Somebody asks this program to show itself. Here it is.")
        default: return
        }
    }

    // MARK: Words

    /// What became of the last value, and how much care the next one needs.
    private func explain(_ question: SecretQuestion) {
        if let error = question.error { return say("Not given to the card: \(error).") }
        switch question.last?.outcome {
        case .wrong: if let kind = question.last?.kind { say(ChangePINWords.wrong(kind)) }
        case .void: say(ChangePINWords.again(question.kind))
        case .accepted: if question.last?.kind == .puk { say("The PIN is unblocked and has 3 tries again.") }
        case nil: break
        }
        let isNews = question.last?.kind != question.kind || question.kind == .pin
        if isNews, let text = ChangePINWords.tries(question.kind, left: question.triesLeft) { say(text) }
    }

    private func goesOn(otherwise text: String? = nil, hint: String? = nil) async -> Bool {
        let reply = await source.askToGoOn()
        if case .confirmed = reply { return true }
        giveUp(reply, noTerminal: text, hint: hint)
        return false
    }

    /// There is no answer: keeps why.
    private func giveUp(
        _ reply: Reply,
        wanted form: String = "an answer",
        noTerminal: String? = nil,
        hint: String? = nil
    ) {
        switch reply {
        case .ended:
            end(Failure(.failed, "no more input: \(purpose.notDone)", hint: "run badgectl \(purpose.command) again"))
        case .malformed(let line):
            let text = "line \(line) of standard input is not \(form)"
            end(Failure(.failed, text, hint: "nothing was given to the card"))
        case .noTerminal:
            let hint = hint ?? "run it in a terminal, or give the values with --pin-stdin"
            end(Failure(.failed, noTerminal ?? "no terminal to ask on", hint: hint))
        case .calledOff, .confirmed, .secret, .text: return
        }
    }

    private func end(_ failure: Failure) { state.withLock { if $0.ending == nil { $0.ending = failure } } }

    // MARK: Virtual readers

    private func takeTurn() -> Bool {
        state.withLock { state in
            state.insertions += 1
            return state.insertions <= Self.maximumInsertions
        }
    }

    /// The virtual reader to fill: the one that was named, else the first when no reader has a card.
    private func shelf(among readers: [Reader]) -> String? {
        let shelves = readers.filter { $0.isAttached && $0.isInsertable && $0.card == nil && !$0.isBusy }
        if let wanted { return shelves.contains { $0.name == wanted } ? wanted : nil }
        guard readers.allSatisfy({ $0.card == nil }) else { return nil }
        return shelves.map(\.name).min()
    }
}
