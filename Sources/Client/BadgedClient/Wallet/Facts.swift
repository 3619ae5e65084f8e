// SPDX-License-Identifier: Apache-2.0
import Text

/// One line of what a program shows its user before a signature.
public struct WalletFact: Sendable, Equatable {
    /// Such as `account`. Members of an action begin with two spaces.
    public var name: String { label.description }
    /// The value, as badged has decoded it or as the app has given it. It may hold any characters: a program for a
    /// terminal must not print control characters.
    public var text: String { content.description }
    /// The name and the value, for a program with translations.
    package let label: Phrase
    package let content: Phrase

    public init(_ name: String, _ text: String) { self.init(Phrase(verbatim: name), text) }

    init(_ label: Phrase, _ text: String) { self.init(label, Phrase(verbatim: text)) }

    init(_ label: Phrase, _ content: Phrase) {
        self.label = label
        self.content = content
    }
}

extension WalletRequest {
    /// What the user must see before agreeing, in the order in which people look at it.
    public var facts: [WalletFact] {
        var facts = [WalletFact(Phrase("app"), dappName)]
        func add(_ label: Phrase, _ text: String?) {
            if let text, !text.isEmpty { facts.append(WalletFact(label, text)) }
        }
        add(Phrase("says"), info)
        add(Phrase("user"), userName)
        add(Phrase("account"), account.map { account in permission.map { "\(account)@\($0)" } ?? account })
        for (index, action) in actions.enumerated() {
            let label = actions.count == 1 ? Phrase("action") : Phrase("action \(index + 1)")
            facts.append(WalletFact(label, Phrase("\(action.name) of \(action.account)")))
            add(Phrase("  by"), action.authorization.joined(separator: ", "))
            add(Phrase("  says"), action.info)
            facts += action.data.facts(indentation: "  ")
        }
        add(Phrase("text"), text)
        add(Phrase("expires"), expiration.map { $0.replacing("T", with: " ") + " UTC" })
        add(Phrase("sent to"), callback)
        add(Phrase("chain"), chainID)
        facts.append(WalletFact(Phrase("digest"), digest))
        return facts
    }
}

extension DataToVerify {
    /// What the user must see before agreeing, in the order in which people look at it.
    public var facts: [WalletFact] {
        var facts = [WalletFact(Phrase("purpose"), context.workflowType.lowercased().replacing("_", with: " "))]
        facts.append(WalletFact(entity.type, ""))
        let notSigned = Set(signing?.notSigned ?? [])
        facts += (entity.members.members ?? []).map { member in
            let isSigned = !notSigned.contains(member.key)
            return isSigned
                ? WalletFact("  \(member.key)", member.value.shown)
                : WalletFact(Phrase("  \(member.key) (not signed)"), member.value.shown)
        }
        guard let signing else { return facts }
        facts.append(WalletFact(Phrase("standard"), signing.standard))
        switch signing.content {
        case .message(let text): facts.append(WalletFact(Phrase("text"), text))
        case .typedData(let data):
            facts.append(WalletFact(Phrase("data"), ""))
            facts += data.facts(indentation: "  ")
        case .preimage(let bytes): facts.append(WalletFact(Phrase("bytes"), bytes))
        }
        facts.append(WalletFact(Phrase("digest"), signing.digest))
        return facts
    }
}

extension JSON {
    /// The members of an object: strings as they are, other values as JSON.
    fileprivate func facts(indentation: String) -> [WalletFact] {
        guard let members else { return [WalletFact(indentation + "data", shown)] }
        return members.map { WalletFact(indentation + $0.key, $0.value.shown) }
    }

    fileprivate var shown: String { string ?? String(decoding: bytes, as: UTF8.self) }
}
