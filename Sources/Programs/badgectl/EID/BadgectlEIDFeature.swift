// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// The commands for eID cards.
let eidFeature = FeatureCommands(
    group: .idCard,
    commands: [ChangePINCommand.spec, AuthCommand.spec],
    describeCard: { $0.eid?.summary }
)

extension OptionSpec {
    static let timeout = OptionSpec(.timeout, .seconds, "give up when no usable card comes for this long")
    static let pinentry = OptionSpec(.pinentry, "ask in windows, with the program pinentry")
    static let pinStdin = OptionSpec(.pinStdin, "read the values from standard input, one per line")
}

extension EIDCard {
    /// A summary such as `eID card, 2 PIN tries left`.
    var summary: String {
        if isInoperative { return tr("eID card, PUK used up") }
        if isDeactivated { return tr("eID card, online function switched off") }
        switch retryCounter {
        case 3...: return tr("eID card")
        case 2: return tr("eID card, 2 PIN tries left")
        case 1: return tr("eID card, 1 PIN try left, needs the CAN first")
        default: return tr("eID card, PIN blocked, needs the PUK")
        }
    }
}

/// The questions about eID cards.
enum EIDTexts {
    /// A transport PIN has 5 digits. It can only be replaced. `opensWithCAN`: whether the CAN opens the card instead of
    /// the PIN.
    static func texts(
        of question: SecretQuestion,
        takesTransportPIN: Bool = true,
        opensWithCAN: Bool = false
    ) -> SecretTexts {
        let form: TypedSecretForm
        switch question.kind {
        case .pin: form = TypedSecretForm(name: "PIN", digits: takesTransportPIN ? 5...6 : 6...6)
        case .can: form = TypedSecretForm(name: "CAN", digits: 6...6)
        case .newPIN: form = TypedSecretForm(name: tr("new PIN"), digits: 6...6, isTypedTwice: true)
        case .puk: form = TypedSecretForm(name: "PUK", digits: 10...10)
        // Only of wallet cards.
        case .newPUK, .duressPIN, .pairingPassword:
            form = TypedSecretForm(name: question.kind.label, content: .characters(1...128))
        }
        return SecretTexts(
            form: form,
            work: work(question.kind),
            explanation: explanation(question.kind, left: question.triesLeft, opensWithCAN: opensWithCAN)
        )
    }

    private static func work(_ kind: SecretKind) -> String {
        switch kind {
        case .pin: tr("checking the PIN")
        case .can: tr("checking the CAN")
        case .puk: tr("checking the PUK and unblocking the PIN")
        case .newPIN: tr("changing the PIN")
        case .newPUK, .duressPIN, .pairingPassword: tr("working")
        }
    }

    private static func explanation(_ kind: SecretKind, left: Int?, opensWithCAN: Bool) -> String? {
        switch (kind, left) {
        case (.pin, 2): tr("2 tries are left.")
        case (.pin, 1): tr("This is the last try. Another wrong PIN blocks the PIN, and then you need the PUK.")
        case (.can, 1) where !opensWithCAN:
            tr("One PIN try is left. First enter the CAN: the 6 digits at the bottom right of the card's front.")
        case (.can, _): tr("The service accepts the CAN: the 6 digits at the bottom right of the card's front.")
        case (.puk, _): tr("The PIN is blocked. The PUK unblocks it: 10 digits, in the letter that came with the card.")
        case (.pin, _), (.newPIN, _), (.newPUK, _), (.duressPIN, _), (.pairingPassword, _): nil
        }
    }
}

extension CommandLineUser: EIDUser {
    func agree(to request: ConsentRequest) async -> [String]? {
        let granted = await choose(request)
        if let granted {
            grant(request.rights.required + granted.filter(request.rights.optional.contains))
            service = ConsentText.summary(request.service)
        }
        return granted
    }

    /// Asks for the consent. Returns the rights to grant; nil: none of the request.
    private func choose(_ request: ConsentRequest) async -> [String]? {
        var rights = request.rights
        // A window that asks for consent has them itself. One for the PIN has a summary, and room for what counts there.
        say(ConsentText.service(request.service, transactionInfo: rights.transactionInfo), isPassing: true)
        say(ConsentText.rights(rights), isPassing: true)
        if let automatic {
            guard let granted = automatic.granted(rights) else {
                giveUp {
                    CommandFailure(
                        tr("the service requires more than --rights allows: \($0)"),
                        hint: tr("add the rights that it requires to --rights")
                    )
                }
                return nil
            }
            return granted
        }
        if invocation.has(.yes) { return rights.effective }
        if let answer = await source.choose(ConsentText.choice(request)) { return granted(answer, rights) }
        while true {
            let reply = await source.ask(ConsentText.prompt(request))
            guard case .text(let text) = reply else {
                giveUp(
                    reply,
                    hint: tr("run badgectl in a terminal, or use --yes to give the service everything that it asks for")
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
            case .unclear: say(tr("Type y to agree, n to end, t for the terms of usage, or numbers from the list."))
            }
        }
    }

    private func refuse() {
        let agreement = source is PinentrySource ? tr("choose Agree") : tr("answer y")
        giveUp { CommandFailure(tr("not agreed: \($0)"), hint: tr("to agree, start again and \(agreement)")) }
    }

    /// The rights that a button grants; nil: none.
    private func granted(_ answer: Choice.Answer, _ rights: AccessRights) -> [String]? {
        switch answer {
        case .yes: return rights.effective
        case .other: return []
        case .no: refuse()
        case .cancelled: break
        case .failed: giveUp(.noPinentry)
        case .tooLong: giveUp(.tooLongForWindows)
        }
        return nil
    }
}
