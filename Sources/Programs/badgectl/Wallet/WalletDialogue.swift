// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

extension CommandLineUser: WalletUser {
    // MARK: Consent

    func agree(to request: WalletRequest) async -> Bool {
        if let error = request.error { say(tr("The request has changed: \(DaemonWords.text(error))")) }
        guard await agree(WalletTexts.table(request.facts)) else { return false }
        if request.isTransaction {
            notDone = tr("the transaction may have been sent; look at the chain before you repeat it")
        }
        return true
    }

    func verify(_ data: DataToVerify) async -> Bool { await agree(WalletTexts.table(data.facts)) }

    private func agree(_ table: String) async -> Bool {
        cardIsThere()
        let text = tr("The card is asked to sign:\n") + table
        if invocation.has(.yes) {
            // The table would fill the window that asks for the PIN next.
            say(text, isPassing: true)
            return true
        }
        if let answer = await source.choose(Choice(text: text, yes: tr("Sign"))) {
            switch answer {
            case .yes: return true
            case .other, .no: refuse()
            case .cancelled: break
            case .failed: giveUp(.noPinentry)
            case .tooLong: giveUp(.tooLongForWindows)
            }
            return false
        }
        say(text)
        while true {
            let reply = await source.ask(tr("Sign? [y/N] "))
            guard case .text(let answer) = reply else {
                giveUp(reply, hint: tr("run badgectl in a terminal, or use --yes to sign without a question"))
                return false
            }
            if answer.isYes { return true }
            if answer.isNo || answer.asAnswer.isEmpty {
                refuse()
                return false
            }
            say(tr("Type y to sign, or n to end."))
        }
    }

    private func refuse() {
        let agreement = source is PinentrySource ? tr("choose Sign") : tr("answer y")
        giveUp { CommandFailure(tr("not agreed: \($0)"), hint: tr("to sign, start again and \(agreement)")) }
    }

    // MARK: Words and PUK

    func show(_ wallet: PaperWallet) async -> Bool {
        cardIsThere()
        let advice = tr(
            """
            Write these \(wallet.mnemonics.count) words down, on paper, in this order. They are the only copy of your \
            keys. Whoever has them controls your accounts. Without them, the keys of a lost card are lost for ever. \
            They are shown once.
            """
        )
        return await reveal(
            "\(advice)\n\n\(WalletTexts.table(wallet.mnemonics))\n",
            noTerminal: tr("there is no terminal to show the words on")
        )
    }

    func show(_ puk: NewPUK) async -> Bool {
        cardIsThere()
        let digits = stride(from: 0, to: puk.puk.count, by: 4).map { puk.puk.dropFirst($0).prefix(4) }
        let advice = tr("Write this PUK down, 12 digits. It unblocks the PIN after three wrong ones. It is shown once.")
        return await reveal(
            "\(advice)\n\n  \(digits.joined(separator: " "))\n",
            noTerminal: tr("there is no terminal to show the PUK on")
        )
    }

    private func reveal(_ text: String, noTerminal: String) async -> Bool {
        let reply = await source.reveal(text)
        if case .confirmed = reply {
            noteAnswer()
            return true
        }
        giveUp(reply, noTerminal: noTerminal, hint: tr("run badgectl in a terminal"))
        return false
    }

    func words(_ question: WordsQuestion) async -> SecretBox? {
        if let error = question.error { say("\(DaemonWords.text(error)).") }
        if endsScript(question.error) { return nil }
        if case .all = question.wanted, question.error == nil {
            say(
                tr("Type the words with spaces or commas between them; the first four letters of each are enough. The")
                    + tr(" terminal does not show them.")
            )
        }
        let form = WalletTexts.form(question.wanted)
        guard let words = await secret(form, wanted: form.length)?.take() else { return nil }
        return Self.plain(words)
    }

    func passphrase(_ question: PassphraseQuestion) async -> SecretBox? {
        if let error = question.error { say("\(DaemonWords.text(error)).") }
        if endsScript(question.error) { return nil }
        say(
            tr(
                "The passphrase is as important as the words: with another one, or without it, they restore another wallet."
            )
                + tr(" Write it down, and keep it apart from the words. It has ASCII characters only, also where other")
                + tr(" programs take more.")
        )
        var form = TypedSecretForm(name: tr("passphrase"), content: .characters(1...256))
        form.isTypedTwice = true
        return await secret(form)
    }

    /// The words in lower case with one space between them.
    private static func plain(_ words: consuming Secret) -> SecretBox {
        let count = words.count
        var length = 0
        let plain = words.withBytes { typed in
            Secret(count: count) { target in
                var isBetween = true
                for byte in typed {
                    let isSpace = byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
                    if !(isSpace && isBetween) {
                        target[length] = (0x41...0x5A).contains(byte) ? byte | 0x20 : isSpace ? 0x20 : byte
                        length += 1
                    }
                    isBetween = isSpace
                }
                if isBetween, length > 0 { length -= 1 }
            }
        }
        return SecretBox(plain.part(0..<length) ?? Secret([]))
    }
}
