// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// The texts around a question for a secret of a card.
struct SecretTexts {
    var form: TypedSecretForm
    /// What the card does with the value.
    var work: String
    /// What the user should know before typing the value; nil: nothing.
    var explanation: String?

    init(form: TypedSecretForm, work: String, explanation: String? = nil) {
        self.form = form
        self.work = work
        self.explanation = explanation
    }

    /// The texts for a question about the card in the reader.
    static func of(_ question: SecretQuestion, takesTransportPIN: Bool, opensWithCAN: Bool) -> SecretTexts {
        if question.isOfWalletCard { return WalletTexts.texts(of: question) }
        return EIDTexts.texts(of: question, takesTransportPIN: takesTransportPIN, opensWithCAN: opensWithCAN)
    }
}

extension SecretKind {
    /// The name for people.
    var label: String {
        switch self {
        case .pin: "PIN"
        case .can: "CAN"
        case .newPIN: tr("new PIN")
        case .puk: "PUK"
        case .newPUK: tr("new PUK")
        case .duressPIN: tr("duress PIN")
        case .pairingPassword: tr("pairing password")
        }
    }
}

extension SecretQuestion {
    /// Why the value before was not accepted; nil: it was, or there was none.
    fileprivate var lastFault: String? {
        if isUnanswered { return tr("the card gave no answer, so the value may have been right") }
        if isWrong { return tr("the \(kind.label) was wrong") }
        if let error { return tr("badged has not sent the value to the card (\(DaemonWords.text(error)))") }
        return switch (last?.outcome, last?.kind) {
        case (.wrong, let kind?): tr("the \(kind.label) was wrong")
        case (.void, .newPIN): tr("the card left before it answered, and may have the old PIN or the new one")
        case (.void, _): tr("the card left before it answered")
        default: nil
        }
    }
}

extension CommandLineUser: CardUser {
    var isAutomatic: Bool { automatic != nil }

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        cardIsThere()
        if let automatic { return answer(question, automatic) }
        let texts = self.texts(of: question)
        explain(question, texts)
        if endsScript(question.lastFault) { return nil }
        var form = texts.form
        form.service = service
        guard let secret = await secret(form) else { return nil }
        say(tr("Leave the card on the reader: \(texts.work) ..."), isPassing: true)
        isChangingPIN = question.kind == .newPIN
        isChecked = !isChangingPIN
        return secret
    }

    /// Asks for a secret. nil: there is none, and the workflow is given up. `wanted` is what a script has to write.
    func secret(_ form: TypedSecretForm, wanted: String? = nil) async -> SecretBox? {
        let reply = await source.ask(form)
        if case .secret(let secret) = reply {
            noteAnswer()
            return secret
        }
        giveUp(reply, wanted: wanted ?? tr("a \(form.name) of \(form.length)"))
        return nil
    }

    private func answer(_ question: SecretQuestion, _ automatic: AutomaticAnswers) -> SecretBox? {
        do {
            return try automatic.answer(question)
        } catch {
            giveUp { notDone in
                var failure = error as? CommandFailure ?? CommandFailure(error)
                failure.text += ": \(notDone)"
                return failure
            }
            return nil
        }
    }

    func typeOnKeypad(_ question: SecretQuestion) async -> Bool {
        cardIsThere()
        if isAutomatic {
            giveUp(
                CommandFailure(
                    tr("the reader has a keypad, where only a person can type"),
                    hint: tr("use another reader")
                )
            )
            return false
        }
        let texts = self.texts(of: question)
        explain(question, texts)
        // Without a pause the same error might come again and again.
        if question.error != nil { return await continues() }
        say(tr("Enter the \(texts.form.name) on the keypad of the reader \(question.reader.name).").printable)
        isChangingPIN = question.kind == .newPIN
        isChecked = !isChangingPIN
        return true
    }

    private func texts(of question: SecretQuestion) -> SecretTexts {
        // With the right CanAllowed, the PIN and its tries play no part.
        let opensWithCAN = granted?.contains("CanAllowed") == true
        return SecretTexts.of(question, takesTransportPIN: takesTransportPIN, opensWithCAN: opensWithCAN)
    }

    /// RUN_AUTH takes no transport PIN.
    private var takesTransportPIN: Bool {
        guard case .run(let command) = invocation.request else { return true }
        return command.name != "auth"
    }

    /// Says what happened to the last value, and what to know before the next one.
    private func explain(_ question: SecretQuestion, _ texts: SecretTexts) {
        isChangingPIN = false
        isChecked = false
        if let error = question.error {
            let text = DaemonWords.text(error)
            return say(question.wasTried ? text + "." : tr("Not sent to the card: \(text)."))
        }
        let last = question.last
        switch last?.outcome {
        case .wrong: if let last { say(tr("That \(last.kind.label) was wrong.")) }
        case .void: say(tr("The card left before it answered. The \(texts.form.name) is needed again."))
        case .accepted: if last?.kind == .puk { say(tr("The PIN is unblocked and has 3 tries again.")) }
        case nil: break
        }
        if last?.kind != question.kind || question.kind == .pin
            || question.kind == .puk && question.isOfWalletCard,
            let text = texts.explanation
        {
            say(text)
        }
    }
}
