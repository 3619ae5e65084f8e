// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Secrets

/// The commands for eID cards.
let eidFeature = Feature(commands: [ChangePINCommand.spec, AuthCommand.spec], describeCard: { $0.eid?.summary })

extension OptionSpec {
    static let timeout = OptionSpec("--timeout", .seconds, "give up when no usable card comes for this long")
    static let pinentry = OptionSpec("--pinentry", "ask in windows, with the program pinentry")
    static let pinStdin = OptionSpec("--pin-stdin", "read the values from standard input, one per line")
}

extension EIDCard {
    /// A summary such as `eID card, 2 PIN tries left`.
    var summary: String {
        if isInoperative { return "eID card, PUK used up" }
        if isDeactivated { return "eID card, online function switched off" }
        switch retryCounter {
        case 3...: return "eID card"
        case 2: return "eID card, 2 PIN tries left"
        case 1: return "eID card, 1 PIN try left, needs the CAN first"
        default: return "eID card, PIN blocked, needs the PUK"
        }
    }
}

extension SecretKind {
    var form: SecretForm {
        switch self {
        case .pin: SecretForm(name: "PIN", digits: 5...6)
        case .can: SecretForm(name: "CAN", digits: 6...6)
        case .newPIN: SecretForm(name: "new PIN", digits: 6...6, isTypedTwice: true)
        case .puk: SecretForm(name: "PUK", digits: 10...10)
        }
    }

    /// What the card does with the value.
    fileprivate var work: String {
        switch self {
        case .pin: "checking the PIN"
        case .can: "checking the CAN"
        case .puk: "checking the PUK and unblocking the PIN"
        case .newPIN: "changing the PIN"
        }
    }

    /// What the user should know before typing the value; nil: nothing. `left` is the number of PIN tries.
    fileprivate func explanation(left: Int?) -> String? {
        switch (self, left) {
        case (.pin, 2): "2 tries are left."
        case (.pin, 1): "This is the last try. Another wrong PIN blocks the PIN, and then you need the PUK."
        case (.can, 1):
            "One PIN try is left. First enter the CAN: the 6 digits at the bottom right of the card's front."
        case (.can, _): "The service accepts the CAN: the 6 digits at the bottom right of the card's front."
        case (.puk, _): "The PIN is blocked. The PUK unblocks it: 10 digits, in the letter that came with the card."
        case (.pin, _), (.newPIN, _): nil
        }
    }
}

extension CommandLineUser: EIDUser {
    func answer(_ question: SecretQuestion) async -> SecretBox? {
        cardIsThere()
        explain(question)
        let form = question.kind.form
        let reply = await source.ask(form)
        guard case .secret(let secret) = reply else {
            giveUp(reply, wanted: "a \(form.name) of \(form.length)")
            return nil
        }
        say("Leave the card on the reader: \(question.kind.work) ...", isPassing: true)
        isChangingPIN = question.kind == .newPIN
        return secret
    }

    func typeOnKeypad(_ question: SecretQuestion) async -> Bool {
        cardIsThere()
        explain(question)
        // Without a pause the same error might come again and again.
        if question.error != nil { return await continues() }
        say("Enter the \(question.kind.form.name) on the keypad of the reader \(question.reader.name).".printable)
        isChangingPIN = question.kind == .newPIN
        return true
    }

    /// Says what happened to the last value, and what to know before the next one.
    private func explain(_ question: SecretQuestion) {
        isChangingPIN = false
        if let error = question.error { return say("Not sent to the card: \(error).") }
        let last = question.last
        switch last?.outcome {
        case .wrong: if let last { say("That \(last.kind.form.name) was wrong.") }
        case .void: say("The card left before it answered. The \(question.kind.form.name) is needed again.")
        case .accepted: if last?.kind == .puk { say("The PIN is unblocked and has 3 tries again.") }
        case nil: break
        }
        if last?.kind != question.kind || question.kind == .pin,
            let text = question.kind.explanation(left: question.triesLeft)
        {
            say(text)
        }
    }

    func agree(to request: ConsentRequest) async -> [String]? {
        var rights = request.rights
        say(ConsentText.service(request.service, transactionInfo: rights.transactionInfo))
        say(ConsentText.rights(rights))
        if invocation.has("--yes") { return rights.effective }
        if let answer = await source.choose(ConsentText.choice(request)) { return granted(answer, rights) }
        while true {
            let reply = await source.ask(ConsentText.prompt(request))
            guard case .text(let text) = reply else {
                giveUp(
                    reply,
                    hint: "run badgectl in a terminal, or use --yes to give the service everything that it asks for"
                )
                return nil
            }
            switch ConsentText.decision(text, about: rights) {
            case .agreed: return rights.effective
            case .refused:
                refuse()
                return nil
            case .changed(let effective):
                rights.effective = effective
                say(ConsentText.rights(rights))
            case .wantsTerms: say(ConsentText.terms(request.service))
            case .unclear: say("Type y to agree, n to end, t for the terms of usage, or numbers from the list.")
            }
        }
    }

    private func refuse() {
        giveUp(Failure(.failed, "not agreed: \(notDone)", hint: "to agree, start again and answer y"))
    }

    /// The rights that a button gives; nil: none.
    private func granted(_ answer: Choice.Answer, _ rights: AccessRights) -> [String]? {
        switch answer {
        case .yes: return rights.effective
        case .other: return []
        case .no: refuse()
        case .cancelled: break
        case .failed: giveUp(.noPinentry)
        }
        return nil
    }
}
