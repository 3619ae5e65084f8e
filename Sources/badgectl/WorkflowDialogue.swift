// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// The order of things in `badgectl change-pin` and `badgectl auth`: what comes in, and what is to be done about it. It
/// holds no secret. What a service asks for is in WorkflowDialogue+Consent.swift.
///
/// badged leads: every question is one of its messages. Here is decided how a person hears it, and that nothing is ever
/// answered twice with the same value: an answer belongs to the question that was open when it was asked for.
struct WorkflowDialogue {
    enum Input {
        case message(ServerMessage)
        /// The open question has a well-formed answer, or Return was pressed.
        case answered
        /// What was typed about the access rights.
        case decided(String)
        case inputEnded
        case malformedInput(line: Int)
        case noTerminal
        case signal(Int32)
        case connectionEnded(ClientError)
    }

    enum Effect: Equatable {
        case say(String)
        case ask(SecretKind)
        case askToGoOn
        /// The open question is void.
        case callOff
        /// The value just typed goes out.
        case submit(SecretKind)
        case submitOnKeypad(SecretKind)
        case insertCard(reader: String)
        case continueWorkflow
        case getCertificate
        case askForConsent
        case setAccessRights([String])
        case accept
        case cancel
        /// nil: it is done.
        case end(Failure?)
    }

    enum Question: Equatable {
        case consent
        case secret(SecretKind)
        /// Return, then the keypad has its turn again.
        case goOnWithKeypad(SecretKind)
        case goOnAfterPause
    }

    /// The last value that went to the card.
    private struct Submission {
        var kind: SecretKind
        var triesLeft: Int?
        var cardLeft = false
    }

    /// A virtual card that falls out again and again is not put back for ever.
    private static let maximumInsertions = 10

    let purpose: WorkflowPurpose
    private let wanted: String?
    private var readers: [String: Reader] = [:]
    var question: Question?
    /// What the service has said of itself.
    var certificate: ServiceCertificate?
    var rights: AccessRights?
    private var submission: Submission?
    private var readerInUse: String?
    private var insertions = 0
    private var lastSaid = ""
    private var progress: Int?
    /// Set when the workflow was cancelled: how the program will end.
    private(set) var ending: Failure?

    /// - wanted: the name given with `--reader`.
    init(wanted: String?, purpose: WorkflowPurpose = .changePIN) { (self.wanted, self.purpose) = (wanted, purpose) }

    /// The next one of the same kind: what was known of readers still holds, nothing else does.
    func renewed() -> WorkflowDialogue {
        var next = WorkflowDialogue(wanted: wanted, purpose: purpose)
        next.readers = readers
        return next
    }

    mutating func handle(_ input: Input) -> [Effect] {
        switch input {
        case .message(let message): return handle(message)
        case .answered: return answered()
        case .decided(let text): return decided(text)
        case .inputEnded:
            return cancel(
                Failure(.failed, "no more input: \(purpose.notDone)", hint: "run badgectl \(purpose.command) again")
            )
        case .malformedInput(let line):
            let form = openKind.map { "a \($0.words) of \($0.form)" } ?? "an answer"
            return cancel(
                Failure(.failed, "line \(line) of standard input is not \(form)", hint: "nothing was given to the card")
            )
        case .noTerminal:
            var (text, hint) = ("no terminal to ask on", "run it in a terminal, or give the values with --pin-stdin")
            if question == .goOnAfterPause {
                text = "the card does not lie well on the reader"
                hint = "put it flat on the middle of the reader, and try again"
            } else if question == .consent {
                hint = "run it in a terminal, or say --yes when the service may have all it asks for"
            }
            return cancel(Failure(.failed, text, hint: hint))
        case .signal(let number):
            let failure = Failure(.interrupted(number), "interrupted: \(purpose.notDone)")
            // The second time nobody wants to wait.
            return ending == nil ? [.say(ChangePINWords.cancelling)] + cancel(failure) : [.end(failure)]
        case .connectionEnded(let error): return [.callOff, .end(ending ?? Failure(error))]
        }
    }

    private var openKind: SecretKind? {
        guard case .secret(let kind) = question else { return nil }
        return kind
    }

    mutating func cancel(_ failure: Failure) -> [Effect] {
        guard ending == nil else { return [] }
        ending = failure
        return close() + [.cancel]
    }

    /// The open question, if any, is void.
    mutating func close() -> [Effect] {
        guard question != nil else { return [] }
        question = nil
        return [.callOff]
    }

    private mutating func say(_ text: String) -> [Effect] {
        guard text != lastSaid else { return [] }
        lastSaid = text
        return [.say(text)]
    }

    private mutating func answered() -> [Effect] {
        defer { question = nil }
        switch question {
        case .secret(let kind):
            submission = Submission(kind: kind, triesLeft: triesLeft)
            return say(ChangePINWords.busy(kind)) + [.submit(kind)]
        case .goOnWithKeypad(let kind):
            submission = Submission(kind: kind, triesLeft: triesLeft)
            return [.submitOnKeypad(kind)]
        case .goOnAfterPause: return [.continueWorkflow]
        case .consent, nil: return []
        }
    }

    private var triesLeft: Int? {
        guard let name = readerInUse, case .eid(let counter, _, _) = readers[name]?.card else { return nil }
        return counter
    }

    // MARK: Messages

    private mutating func handle(_ message: ServerMessage) -> [Effect] {
        switch message {
        case .readerList(let list):
            for reader in list { readers[reader.name] = reader }
            return []
        case .reader(let reader): return changed(reader)
        case .insertCard(let error, let reader):
            return close() + insertCard(error: error, reader: reader)
        case .enter(let kind, let error, let reader): return close() + enter(kind, error: error, reader: reader)
        case .pause:
            question = ending == nil ? .goOnAfterPause : nil
            guard question != nil else { return [] }
            return say("The card does not lie well: put it flat on the middle of the reader.") + [.askToGoOn]
        case .status(let status):
            guard let percent = status.progress, percent > 0, percent != progress else { return [] }
            progress = percent
            return say("\(percent) %")
        case .changePINEnded(true, nil): return close() + [.say(ChangePINWords.changed), .end(nil)]
        case .changePINEnded(_, let reason):
            return close() + [.end(ending ?? ChangePINWords.failure(reason: reason))]
        case .accessRights(let rights, let error): return asked(rights, error: error)
        case .certificate(let certificate): return introduced(certificate)
        case .authEnded(let result): return close() + ended(result)
        case .badState(let command):
            // A value or a card that crossed with the next message; what that says is what counts.
            guard ["RUN_AUTH", "RUN_CHANGE_PIN", "CANCEL"].contains(command) else { return [] }
            return close() + [.end(ending ?? Failure(.badState(command: command)))]
        // Who may not see the readers may still change a PIN.
        case .accessDenied("GET_READER_LIST"): return []
        case .authRefused, .changePINRefused, .accessDenied, .unknownCommand, .invalid, .internalError:
            let failure = ClientError(message).map(Failure.init)
            return close() + [.end(ending ?? failure ?? Failure(.failed, purpose.notDone, hint: Failure.seeLog))]
        case .info, .apiLevel, .readerRefused, .health, .authStarted, .changePINStarted, .userInterface, .showUI,
            .unknown, .unreadable,
            .scan, .doorReader, .doorReaderLost, .doorReaderList, .closestDoorReader, .doorReaderRefused:
            return []
        }
    }

    private mutating func changed(_ reader: Reader) -> [Effect] {
        readers[reader.name] = reader
        guard reader.name == readerInUse, reader.card == nil, submission?.cardLeft == false else { return [] }
        submission?.cardLeft = true
        // A virtual reader's card is back on its shelf: badged's doing, nobody has to be told.
        guard question == nil, ending == nil, !reader.isInsertable else { return [] }
        return say(ChangePINWords.cardLeft)
    }

    private mutating func insertCard(error: String?, reader: String?) -> [Effect] {
        if ending != nil { return [] }
        submission?.cardLeft = true
        if let error {
            let sentence = error.hasSuffix(".") ? error : error + "."
            return say(reader.map { "\($0): \(sentence)" } ?? sentence)
        }
        if let shelf = shelf(), insertions < Self.maximumInsertions {
            insertions += 1
            return say("Putting the card into the virtual reader \(shelf).") + [.insertCard(reader: shelf)]
        }
        let known = readers.values.sorted { $0.name < $1.name }
        return say(ChangePINWords.insertCard(wanted: wanted, readers: known))
    }

    /// The virtual reader to fill: the one that was named, else the first when no reader has a card.
    private func shelf() -> String? {
        let shelves = readers.values.filter { $0.isAttached && $0.isInsertable && $0.card == nil && !$0.isBusy }
        if let wanted { return shelves.contains { $0.name == wanted } ? wanted : nil }
        guard readers.values.allSatisfy({ $0.card == nil }) else { return nil }
        return shelves.map(\.name).min()
    }

    private mutating func enter(_ kind: SecretKind, error: String?, reader: Reader) -> [Effect] {
        if ending != nil { return [] }
        readers[reader.name] = reader
        readerInUse = reader.name
        var effects: [Effect] = []
        if let error {
            effects += say("Not given to the card: \(error).")
        } else {
            for text in verdict(on: submission, before: kind) { effects += say(text) }
            let isNews = submission?.kind != kind || kind == .pin
            if isNews, let text = ChangePINWords.tries(kind, left: triesLeft) { effects += say(text) }
        }
        submission = nil
        guard reader.hasKeypad else {
            question = .secret(kind)
            return effects + [.ask(kind)]
        }
        if error != nil {
            // At once again might be for ever.
            question = .goOnWithKeypad(kind)
            return effects + [.askToGoOn]
        }
        submission = Submission(kind: kind, triesLeft: triesLeft)
        return effects + say(ChangePINWords.keypad(kind, reader: reader.name)) + [.submitOnKeypad(kind)]
    }

    /// What the next question tells about the last value.
    private func verdict(on last: Submission?, before kind: SecretKind) -> [String] {
        guard let last else { return [] }
        switch last.kind {
        case .pin:
            if let before = last.triesLeft, let now = triesLeft, now < before { return [ChangePINWords.wrong(.pin)] }
            return kind == .newPIN ? [] : [ChangePINWords.again(.pin)]
        case .can:
            if kind == .pin { return [] }
            return [last.cardLeft ? ChangePINWords.again(.can) : ChangePINWords.wrong(.can)]
        case .puk:
            if kind == .pin { return ["The PIN is unblocked and has 3 tries again."] }
            return [last.cardLeft ? ChangePINWords.again(.puk) : ChangePINWords.wrong(.puk)]
        case .newPIN: return [ChangePINWords.again(kind)]
        }
    }
}
