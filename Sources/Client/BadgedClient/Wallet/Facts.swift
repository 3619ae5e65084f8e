// SPDX-License-Identifier: Apache-2.0
import Text

/// One line of what a program shows its user before a signature.
public struct WalletFact: Sendable, Equatable {
    /// Such as `account`. Members of an action begin with two spaces.
    public var name: String
    /// The value, as badged has decoded it or as the app has given it. It may hold any characters: a program for a
    /// terminal must not print control characters.
    public var text: String

    public init(_ name: String, _ text: String) { (self.name, self.text) = (name, text) }
}

extension WalletRequest {
    /// What the user must see before agreeing, in the order in which people look at it.
    public var facts: [WalletFact] {
        var facts = [WalletFact("app", dappName)]
        func add(_ name: String, _ text: String?) {
            if let text, !text.isEmpty { facts.append(WalletFact(name, text)) }
        }
        add("says", info)
        add("user", userName)
        add("account", account.map { account in permission.map { "\(account)@\($0)" } ?? account })
        for (index, action) in actions.enumerated() {
            let number = actions.count == 1 ? "" : " \(index + 1)"
            add("action\(number)", "\(action.name) of \(action.account)")
            add("  by", action.authorization.joined(separator: ", "))
            add("  says", action.info)
            facts += action.data.facts(indentation: "  ")
        }
        add("text", text)
        add("expires", expiration.map { $0.replacing("T", with: " ") + " UTC" })
        add("sent to", callback)
        add("chain", chainID)
        facts.append(WalletFact("digest", digest))
        return facts
    }
}

extension DataToVerify {
    /// What the user must see before agreeing, in the order in which people look at it.
    public var facts: [WalletFact] {
        var facts = [WalletFact("purpose", context.workflowType.lowercased().replacing("_", with: " "))]
        facts.append(WalletFact(entity.type, ""))
        let notSigned = Set(signing?.notSigned ?? [])
        facts += (entity.members.members ?? []).map { member in
            WalletFact("  \(member.key)" + (notSigned.contains(member.key) ? " (not signed)" : ""), member.value.shown)
        }
        guard let signing else { return facts }
        facts.append(WalletFact("standard", signing.standard))
        switch signing.content {
        case .message(let text): facts.append(WalletFact("text", text))
        case .typedData(let data):
            facts.append(WalletFact("data", ""))
            facts += data.facts(indentation: "  ")
        case .preimage(let bytes): facts.append(WalletFact("bytes", bytes))
        }
        facts.append(WalletFact("digest", signing.digest))
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
