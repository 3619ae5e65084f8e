// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Synchronization
import Text

/// The user of badgectl during a workflow: asks on the terminal or reads a script's answers, and says what happens.
/// Each feature answers its own questions in an extension.
final class CommandLineUser: WorkflowUser {
    private struct State {
        /// How the program ends, from `notDone`; set when the workflow is given up.
        var ending: (@Sendable (_ notDone: String) -> CommandFailure)?
        var lastText = ""
        /// How many texts and steps were shown.
        var shown = 0
        var insertions = 0
        /// Whether a card is needed, and no virtual reader has taken one.
        var needsVirtualCard = false
        /// The virtual reader into which this program has put its last card.
        var virtualReader: String?
        /// What an early end means, such as `the PIN was not changed`.
        var notDone: String
        /// What an early end means after the user has answered a question; nil: the same.
        var notDoneAfterAnswer: String?
        /// Whether no workflow runs, so that a signal has nothing to cancel.
        var isIdle = false
        /// Whether a new PIN was sent to the card and there is no result yet.
        var isChangingPIN = false
        /// Whether the card checks a value that was typed.
        var isChecked = false
        /// The rights that the user has granted to a service; nil before the consent.
        var granted: [String]?
        /// The service of the consent; nil before it.
        var service: String?
        /// Ends the wait for a card after `--timeout`.
        var timer: Task<Void, Never>?
    }

    /// How often the card of a virtual reader is inserted. A card with faults may leave each time.
    private static let maximumInsertions = 10

    let invocation: Invocation
    let source: any AnswerSource
    /// Answers without a person; nil: the user is asked.
    let automatic: AutomaticAnswers?
    /// Shows notifications; nil: this command needs none, or there is no desktop.
    private let notifier: Notifier?
    private let connection: DaemonConnection
    private let output: @Sendable (String) -> Void
    private let state: Mutex<State>
    /// Cancels the workflow.
    private let cancel = Mutex<(@Sendable () -> Void)?>(nil)

    /// The same user with another connection.
    init(_ other: CommandLineUser, _ connection: DaemonConnection, notDone: String) {
        invocation = other.invocation
        source = other.source
        output = other.output
        self.connection = connection
        notifier = other.notifier
        automatic = other.automatic
        state = Mutex(State(notDone: notDone))
    }

    init(
        _ invocation: Invocation,
        _ connection: DaemonConnection,
        notDone: String,
        source: any AnswerSource,
        automatic: AutomaticAnswers? = nil,
        notifier: Notifier? = nil,
        output: @escaping @Sendable (String) -> Void
    ) {
        self.invocation = invocation
        self.connection = connection
        self.source = source
        self.output = output
        self.notifier = notifier
        self.automatic = automatic
        state = Mutex(State(notDone: notDone))
    }

    private var spec: ShellCommand? {
        if case .run(let command) = invocation.request { command } else { nil }
    }

    var command: String { spec?.name ?? "" }

    /// The card that the user puts on the reader, such as `ID card`.
    var card: String { spec?.card ?? tr("card") }

    /// What an early end means, such as `the PIN was not changed`.
    var notDone: String {
        get { state.withLock { $0.notDone } }
        set { state.withLock { $0.notDone = newValue } }
    }

    /// Sets what an early end means as soon as badged may have a secret, or knows that the user has noted one.
    func whenAnswered(notDone: String) { state.withLock { $0.notDoneAfterAnswer = notDone } }

    /// Notes an answer with which badged may change the card.
    func noteAnswer() { state.withLock { $0.notDone = $0.notDoneAfterAnswer ?? $0.notDone } }

    /// Whether no workflow runs.
    var isIdle: Bool { state.withLock { $0.isIdle } }

    var isChangingPIN: Bool {
        get { state.withLock { $0.isChangingPIN } }
        set { state.withLock { $0.isChangingPIN = newValue } }
    }

    var isChecked: Bool {
        get { state.withLock { $0.isChecked } }
        set { state.withLock { $0.isChecked = newValue } }
    }

    /// The rights that the user has granted to a service; nil before the consent.
    var granted: [String]? {
        get { state.withLock { $0.granted } }
        set { state.withLock { $0.granted = newValue } }
    }

    /// The service of the consent, for windows that ask for a secret; nil before it.
    var service: String? {
        get { state.withLock { $0.service } }
        set { state.withLock { $0.service = newValue } }
    }

    /// Why the workflow was given up, with what is known now of its effect; nil when it was not.
    var ending: CommandFailure? { state.withLock { $0.ending?($0.notDone) } }

    /// Prepares for the next workflow. `isIdle`: whether that has not begun yet.
    func reset(notDone: String, isIdle: Bool) {
        state.withLock { $0 = State(notDone: notDone, isIdle: isIdle) }
    }

    /// Notes a signal. Returns true when the workflow is to be cancelled, false when the program is to end at once.
    func interrupt(_ number: Int32) -> Bool {
        let (isFirst, isIdle) = state.withLock { state in
            defer { state.ending = { CommandFailure(.interrupted(number), tr("interrupted: \($0)")) } }
            return (state.ending == nil, state.isIdle)
        }
        if isFirst, !isIdle {
            Console.dropQuestion()
            say(tr("Cancelling."))
        }
        return isFirst
    }

    /// Shows a text, but not twice in a row. `isPassing`: whether the text is void when the next question comes.
    func say(_ text: String, isPassing: Bool = false) {
        let isNew = state.withLock { state in
            defer { state.lastText = text }
            state.shown += 1
            return state.lastText != text
        }
        guard isNew else { return }
        output(text)
        if !isPassing { (source as? PinentrySource)?.note(text) }
    }

    /// Shows a text, on the desktop, too. `isPassing`: as for `say`.
    func announce(_ text: String, isPassing: Bool = false) {
        say(text, isPassing: isPassing)
        notifier?.show(card, text)
    }

    /// Shows a failure on the desktop.
    func notify(_ failure: CommandFailure) {
        notifier?.show(card, PlainWords.text(failure.text + (failure.hint.map { "\n\($0)" } ?? "")))
    }

    /// Sets what cancels the workflow when the user cancels without a question.
    func whenGivenUp(_ body: @escaping @Sendable () -> Void) { cancel.withLock { $0 = body } }

    /// Writes a result to standard output. With `--json` standard output has the messages alone, so the user gets a
    /// text.
    func show(result: String) {
        if invocation.wantsJSON { say(result) } else { Output.line(result) }
    }

    // MARK: WorkflowUser

    func insertCard(error: String?, reader: String?) async {
        startTimer()
        state.withLock { $0.needsVirtualCard = true }
        if let error {
            let error = DaemonWords.text(error)
            let sentence = error.hasSuffix(".") ? error : error + "."
            announce((reader.map { "\($0): \(sentence)" } ?? sentence).printable, isPassing: true)
            return await endIfVirtual(reader)
        }
        // A user without the permission to see readers may still use a card.
        let readers = try? await connection.readers()
        if await insertVirtualCard(among: readers ?? []) { return }
        let wanted = invocation.value(of: .reader)
        announce(Self.insertCard(wanted: wanted, readers: readers, card: card).printable, isPassing: true)
    }

    /// Puts a card into a virtual reader that is free. Returns whether there is one.
    private func insertVirtualCard(among readers: [Reader]) async -> Bool {
        guard let virtual = virtualReader(among: readers), let count = countInsertion(into: virtual) else {
            return false
        }
        say(tr("Inserting the card of the virtual reader \(virtual).").printable, isPassing: true)
        _ = try? await connection.setCard(in: virtual, card: count == 1 ? spec?.virtualCard(invocation) : nil)
        return true
    }

    /// Puts a card into a virtual reader that was busy when the card was needed.
    func readerChanged(_ reader: Reader) async {
        guard reader.isAttached, reader.card == nil, !reader.isBusy, state.withLock({ $0.needsVirtualCard }),
            let readers = try? await connection.readers()
        else { return }
        _ = await insertVirtualCard(among: readers)
    }

    /// Gives the workflow up if only the card that this program has put into a virtual reader could be used: nobody
    /// can take it out.
    private func endIfVirtual(_ reader: String?) async {
        guard let reader, state.withLock({ $0.virtualReader == reader }),
            let readers = try? await connection.readers(),
            readers.contains(where: { $0.name == reader && $0.card != nil && !$0.isBusy }),
            invocation.value(of: .reader) == reader || readers.allSatisfy(\.isInsertable)
        else { return }
        let text = tr("the card in the virtual reader \(reader) cannot be used")
        giveUp { CommandFailure("\(text): \($0)", hint: tr("when badged is restarted, the virtual cards are new")) }
        cancel.withLock { $0 }?()
    }

    func repositionCard() async -> Bool {
        cardIsThere()
        announce(tr("The card has slipped. Put it flat on the middle of the reader."))
        return await continues(
            noTerminal: tr("the card has slipped on the reader"),
            hint: tr("put it flat on the middle of the reader, and try again")
        )
    }

    func cardLeft(reader: String) async { say(tr("The card has left the reader.")) }

    func progress(_ percent: Int) async {
        noteService(at: percent)
        guard percent > 0 else { return }
        let words = spec?.progress[percent].map { ": \($0.replacing("FIELDS", with: fields))" } ?? ""
        showStep("\(percent) %\(words)")
    }

    /// Shows what happens now, on a terminal in a line that the next text replaces.
    private func showStep(_ text: String) {
        guard Console.show(step: text) else { return say(text, isPassing: true) }
        state.withLock { $0.shown += 1 }
    }

    /// Says what happens if nothing else was said for a third of a second.
    func begins(_ words: String) {
        let shown = state.withLock { $0.shown }
        Task { [weak self] in
            try? await Task.sleep(for: .milliseconds(300))
            guard let self, state.withLock({ $0.shown == shown }) else { return }
            showStep(words)
        }
    }

    /// Begins the time that `--timeout` allows the user for putting a card on the reader, unless it runs.
    private func startTimer() {
        guard let seconds = invocation.seconds(of: .timeout) else { return }
        state.withLock { state in
            guard state.timer == nil else { return }
            let text = tr("no usable card came within \(invocation.value(of: .timeout) ?? "") s")
            state.timer = Task { [weak self] in
                try? await Task.sleep(for: .seconds(seconds))
                guard !Task.isCancelled, let self else { return }
                let hint = tr("put the \(card) on the reader, and try again")
                giveUp { CommandFailure("\(text): \($0)", hint: hint) }
                cancel.withLock { $0 }?()
            }
        }
    }

    /// Ends the wait for a card.
    func cardIsThere() {
        state.withLock { state in
            state.timer?.cancel()
            state.timer = nil
            state.needsVirtualCard = false
        }
    }

    // MARK: Replies

    /// Waits until the user presses Return. Returns false when the workflow is given up.
    func continues(noTerminal text: String? = nil, hint: String? = nil) async -> Bool {
        let reply = await source.askToContinue()
        if case .confirmed = reply { return true }
        giveUp(reply, noTerminal: text, hint: hint)
        return false
    }

    /// Notes why a question has no answer.
    func giveUp(
        _ reply: TypedAnswer,
        wanted form: String = tr("an answer"),
        noTerminal: String? = nil,
        hint: String? = nil
    ) {
        switch reply {
        case .ended:
            let hint = tr("run badgectl \(command) again")
            giveUp { CommandFailure(tr("no more input: \($0)"), hint: hint) }
        case .malformed(let line):
            let text = tr("line \(line) of standard input is not \(form)")
            giveUp { CommandFailure(text, hint: tr("\($0); correct the line and try again")) }
        case .repeated(let name): giveUpScript(tr("the \(name) is asked for again"))
        case .noTerminal:
            let hint = hint ?? tr("run badgectl in a terminal, or give the values with --pin-stdin")
            giveUp(CommandFailure(noTerminal ?? tr("there is no terminal to ask on"), hint: hint))
        case .noPinentry: giveUp(.noPinentry)
        case .cancelled, .confirmed, .secret, .text: return
        }
    }

    /// Ends a run whose values come from a script when the last value was not accepted. The next line was written for
    /// another question.
    ///
    /// - Parameter reason: what happened to the last value; nil: nothing that a script could not expect.
    /// - Returns: whether the run ends.
    func endsScript(_ reason: String?) -> Bool {
        guard let reason, source is StreamSource else { return false }
        giveUpScript(reason)
        return true
    }

    private func giveUpScript(_ reason: String) {
        let hint = tr("a line of standard input answers one question, so no other line was used; correct it, try again")
        giveUp { CommandFailure("\(reason): \($0)", hint: hint) }
    }

    /// Notes how the program ends. The first reason counts.
    func giveUp(_ failure: CommandFailure) { giveUp { _ in failure } }

    /// Notes how the program ends, from what an early end means.
    func giveUp(_ ending: @escaping @Sendable (_ notDone: String) -> CommandFailure) {
        state.withLock { if $0.ending == nil { $0.ending = ending } }
    }

    // MARK: Readers

    /// Says where to put the card. `readers` is nil for a user without the permission to see them.
    static func insertCard(wanted: String?, readers: [Reader]?, card: String = tr("ID card")) -> String {
        guard let readers else { return tr("Put the \(card) on the reader\(wanted.map { " \($0)" } ?? "").") }
        let attached = readers.filter(\.isAttached)
        guard let wanted else {
            return attached.isEmpty
                ? tr("No reader is connected. Connect one, then put the \(card) on it.")
                : tr("Put the \(card) on the reader.")
        }
        if attached.contains(where: { $0.name == wanted }) { return tr("Put the \(card) on the reader \(wanted).") }
        let others = attached.map(\.name).joined(separator: ", ")
        return tr("There is no reader \(wanted). Connect it.")
            + (others.isEmpty ? "" : tr(" Connected readers: \(others)."))
    }

    /// Counts an insertion; nil: there were too many.
    private func countInsertion(into reader: String) -> Int? {
        state.withLock { state in
            guard state.insertions < Self.maximumInsertions else { return nil }
            state.insertions += 1
            state.needsVirtualCard = false
            state.virtualReader = reader
            return state.insertions
        }
    }

    /// The virtual reader into which to insert its card: the one of `--reader`, else the first when no reader has a
    /// card.
    private func virtualReader(among readers: [Reader]) -> String? {
        let empty = readers.filter { $0.isAttached && $0.isInsertable && $0.card == nil && !$0.isBusy }
        if let wanted = invocation.value(of: .reader) { return empty.contains { $0.name == wanted } ? wanted : nil }
        guard readers.allSatisfy({ $0.card == nil }) else { return nil }
        return empty.map(\.name).min()
    }
}
