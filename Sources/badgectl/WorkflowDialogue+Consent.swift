// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// What a service asks for, and the answer to it.
extension WorkflowDialogue {
    mutating func asked(_ rights: AccessRights, error: String?) -> [Effect] {
        if ending != nil { return [] }
        self.rights = rights
        guard certificate != nil else { return [.getCertificate] }
        let refusal: [Effect] = error.map { [.say("Not changed: \($0).")] } ?? []
        return refusal + askForConsent()
    }

    mutating func introduced(_ certificate: ServiceCertificate) -> [Effect] {
        guard ending == nil, let rights else { return [] }
        self.certificate = certificate
        return [.say(ConsentWords.service(certificate, transactionInfo: rights.transactionInfo))] + askForConsent()
    }

    private mutating func askForConsent() -> [Effect] {
        guard let rights else { return [] }
        let list = Effect.say(ConsentWords.rights(rights))
        guard purpose != .authenticate(acceptsAll: true) else { return [list, .accept] }
        question = .consent
        return [list, .askForConsent]
    }

    /// `y`, `n`, or numbers of optional rights.
    mutating func decided(_ text: String) -> [Effect] {
        guard question == .consent, let rights else { return [] }
        question = nil
        switch text.lowercased().filter({ !$0.isWhitespace }) {
        case "y", "yes": return [.accept]
        case "n", "no", "":
            return cancel(Failure(.failed, "not agreed: \(purpose.notDone)", hint: "the service can be asked why"))
        default: break
        }
        let numbers = text.split { $0 == "," || $0.isWhitespace }.map { Int($0) }
        guard numbers.allSatisfy({ $0.map(rights.optional.indices.map { $0 + 1 }.contains) ?? false }) else {
            question = .consent
            return [.say("Type y to agree, n to end it, or numbers from the list."), .askForConsent]
        }
        var chosen = Set(rights.effective)
        for name in numbers.compactMap({ $0.map { rights.optional[$0 - 1] } }) {
            if chosen.remove(name) == nil { chosen.insert(name) }
        }
        return [.setAccessRights(rights.optional.filter(chosen.contains))]
    }

    func ended(_ result: AuthenticationResult) -> [Effect] {
        guard result.isSuccess else {
            let way: [Effect] = result.url.map { [.say("The browser goes back to:"), .say($0)] } ?? []
            return (ending == nil ? way : []) + [.end(ending ?? ConsentWords.failure(result))]
        }
        let way: [Effect] = result.url.map { [.say("The browser goes on at:"), .say($0)] } ?? []
        return [.say("The service has what it asked for.")] + way + [.end(nil)]
    }
}
