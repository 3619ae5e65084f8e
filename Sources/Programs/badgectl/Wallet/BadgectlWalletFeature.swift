// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

let walletFeature = FeatureCommands(
    group: .wallet,
    commands: [WalletCommand.spec],
    describeCard: { $0.keycard?.summary }
)

extension Keycard {
    /// A summary such as `Keycard 3.1, 2 PIN tries left`.
    var summary: String {
        guard isSupported else { return tr("\(name), a version that badged does not support") }
        var parts = [name]
        if !isInitialised {
            parts.append(tr("new"))
        } else if keyUID == nil {
            parts.append(tr("no keys"))
        }
        switch (pinTries, pukTries) {
        case (0, 0): parts.append(tr("PIN and PUK used up"))
        case (0, _): parts.append(tr("PIN blocked, needs the PUK"))
        case (1, _): parts.append(tr("1 PIN try left"))
        case (2, _): parts.append(tr("2 PIN tries left"))
        default: break
        }
        return parts.joined(separator: ", ")
    }

    private var name: String { version.map { tr("Keycard \($0)") } ?? "Keycard" }

    /// What `badgectl wallet status` shows, and what to do next.
    var rows: [(String, String)] {
        let state =
            if !isSupported {
                tr("badged does not support this version, only 3.0, 3.1 and 4.0: use another card")
            } else if !isInitialised {
                tr("new: badgectl wallet setup, or badgectl wallet words")
            } else if pinTries == 0, pukTries == 0 {
                version == "3.0"
                    ? tr(
                        "PIN and PUK used up, and this version cannot be reset: another card and badgectl wallet words"
                    )
                    : tr("PIN and PUK used up: only badgectl wallet reset-card and the words help")
            } else if pinTries == 0 {
                tr("PIN blocked: badgectl wallet unblock")
            } else if keyUID == nil {
                tr("no keys: badgectl wallet setup, or badgectl wallet words")
            } else {
                tr("ready")
            }
        var rows = [(tr("card"), name), (tr("state"), state)]
        if let keyUID { rows.append((tr("key UID"), keyUID)) }
        if isInitialised, isSupported {
            rows.append(("PIN", pinTries.map(Self.tries) ?? tr("badged cannot know the tries left")))
            rows.append(("PUK", pukTries.map(Self.tries) ?? tr("badged cannot know the tries left")))
        }
        switch isPaired {
        case true: rows.append((tr("pairing"), tr("paired with this computer")))
        case false: rows.append((tr("pairing"), tr("not paired with this computer yet")))
        case nil: break
        }
        if let usedSlots, let freeSlots {
            let hint = freeSlots == 0 ? tr(": badgectl wallet unpair --others on a paired computer frees them") : ""
            rows.append((tr("slots"), tr("\(usedSlots) used, \(freeSlots) free\(hint)")))
        }
        switch isTrusted {
        case true: rows.append((tr("issuer"), tr("trusted")))
        case false:
            rows.append(
                (
                    tr("issuer"),
                    tr("not trusted: any action names the line for badged.conf(5) that trusts the card")
                )
            )
        case nil: break
        }
        return rows
    }

    private static func tries(_ count: Int) -> String { count == 1 ? tr("1 try left") : tr("\(count) tries left") }
}

/// The questions about wallet cards.
enum WalletTexts {
    static func texts(of question: SecretQuestion) -> SecretTexts {
        let left = question.triesLeft
        switch question.kind {
        case .pin:
            return SecretTexts(
                form: TypedSecretForm(name: "PIN", digits: 6...6),
                work: tr("checking the PIN"),
                explanation: left.flatMap {
                    switch $0 {
                    case 1: tr("This is the last try. Another wrong PIN blocks the PIN, and then you need the PUK.")
                    case ..<3: tr("\($0) tries are left.")
                    default: nil
                    }
                }
            )
        case .puk:
            let tries =
                switch left {
                case nil: ""
                case 1 where question.reader.card?.keycard?.version == "3.0":
                    tr(" This is the last try: after another wrong PUK only another card and the words help.")
                case 1: tr(" This is the last try: after another wrong PUK only reset-card and the words help.")
                case .some(let left): tr(" \(left) tries are left.")
                }
            return SecretTexts(
                form: TypedSecretForm(name: "PUK", digits: 12...12),
                work: tr("checking the PUK"),
                explanation: tr("The PIN is blocked. The PUK unblocks it: the 12 digits that you wrote down.") + tries
            )
        case .newPIN:
            return SecretTexts(
                form: TypedSecretForm(name: tr("new PIN"), digits: 6...6, isTypedTwice: true),
                work: tr("setting the PIN")
            )
        case .newPUK:
            return SecretTexts(
                form: TypedSecretForm(name: tr("new PUK"), digits: 12...12, isTypedTwice: true),
                work: tr("setting the PUK"),
                explanation: tr("Choose the PUK, 12 digits, and write it down: it unblocks the PIN.")
            )
        case .duressPIN:
            return SecretTexts(
                form: TypedSecretForm(name: tr("duress PIN"), digits: 6...6, isTypedTwice: true),
                work: tr("setting the PINs"),
                explanation: tr(
                    "Choose the duress PIN, 6 digits other than the PIN. It opens another wallet, with other"
                )
                    + tr(" keys, and nothing shows that it is not the main one.")
            )
        case .pairingPassword:
            return SecretTexts(
                form: TypedSecretForm(name: tr("pairing password"), content: .characters(1...128)),
                work: tr("pairing this computer with the card"),
                explanation: tr("The card has a pairing password of its own. It is not the PIN.")
            )
        case .can:
            return SecretTexts(form: TypedSecretForm(name: "CAN", digits: 6...6), work: tr("working"))
        }
    }

    /// The words in a numbered table with three columns, read from the top to the bottom.
    static func table(_ words: [String]) -> String {
        let rows = (words.count + 2) / 3
        let width = words.map(\.count).max() ?? 0
        return (0..<rows).map { row in
            stride(from: row, to: words.count, by: rows).map { index in
                let number = String(repeating: " ", count: index < 9 ? 1 : 0) + "\(index + 1)"
                let word = words[index]
                return "  \(number)  \(word)" + String(repeating: " ", count: max(0, width - word.count))
            }.joined().trimmingRight
        }.joined(separator: "\n")
    }

    /// What the user must see before a signature.
    static func table(_ facts: [WalletFact]) -> String {
        Help.columns(facts.map { (tr($0.label), tr($0.content)) })
    }

    /// Such as `words 3, 7 and 11`.
    static func name(_ wanted: WordsQuestion.Wanted) -> String {
        switch wanted {
        case .all(let count): return tr("\(count) words")
        case .positions(let positions):
            guard let last = positions.last, positions.count > 1 else { return tr("word \(positions.first ?? 0)") }
            return tr("words \(positions.dropLast().map { "\($0)" }.joined(separator: ", ")) and \(last)")
        }
    }

    static func form(_ wanted: WordsQuestion.Wanted) -> TypedSecretForm {
        let count =
            switch wanted {
            case .all(let count): count
            case .positions(let positions): positions.count
            }
        return TypedSecretForm(name: name(wanted), content: .words(count))
    }
}

extension String {
    fileprivate var trimmingRight: String {
        var text = self[...]
        while text.last == " " { text = text.dropLast() }
        return String(text)
    }
}

/// `badgectl wallet status`: shows the wallet cards in the readers.
enum WalletStatus {
    @Sendable static func run(_ invocation: Invocation) async throws {
        let connection = try await invocation.connect(keepsEvents: false)
        let readers = try await connection.readers()
        let wanted = invocation.value(of: .reader)
        if let wanted, !readers.contains(where: { $0.name == wanted }) {
            throw CommandFailure(tr("there is no reader \(wanted)"), hint: tr("badgectl readers lists the readers"))
        }
        let cards = readers.compactMap { reader in
            reader.card?.keycard.map { (reader: reader.name, card: $0) }
        }.filter { wanted == nil || $0.reader == wanted }
        guard !cards.isEmpty else {
            throw CommandFailure(
                tr("no reader has a wallet card"),
                hint: tr("put the Keycard on the reader, and try again")
            )
        }
        guard !invocation.wantsJSON else { return }
        let tables = cards.map { reader, card in
            reader.printable + "\n" + Help.columns(card.rows)
        }
        Output.line(tables.joined(separator: "\n"))
    }
}
