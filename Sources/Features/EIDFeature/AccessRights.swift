// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Server
import Text
import Wire

/// ACCESS_RIGHTS asks the user which rights the service gets. ACCEPT answers with the consent at that time.
struct AccessRightsPrompt: Prompt {
    typealias Answer = Consent

    var consent: Consent

    var name: String { AccessRightsMessage.name.description }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        AccessRightsMessage(consent: consent, error: error)
    }

    // MARK: Commands

    static let commands = [
        CommandSpec("GET_ACCESS_RIGHTS", permission: .cards) { session, command in
            guard let consent = session.workflow?.prompt(AccessRightsPrompt.self)?.prompt.consent else {
                return .badState
            }
            session.answer(AccessRightsMessage(consent: consent), to: command)
            return .answered
        },
        CommandSpec("SET_ACCESS_RIGHTS", permission: .cards) { session, command in
            guard let prompt = session.workflow?.prompt(AccessRightsPrompt.self) else { return .badState }
            do throws(ChoiceError) {
                try prompt.prompt.consent.choose(command)
                session.answer(AccessRightsMessage(consent: prompt.prompt.consent), to: command)
            } catch {
                prompt.refuse(command, error.text)
            }
            return .answered
        },
        CommandSpec("GET_CERTIFICATE", permission: .cards) { session, command in
            guard let consent = session.workflow?.prompt(AccessRightsPrompt.self)?.prompt.consent else {
                return .badState
            }
            session.answer(CertificateMessage(certificate: consent.certificate), to: command)
            return .answered
        },
    ]

    /// Handles ACCEPT.
    static func answer(
        _ open: OpenPrompt<AccessRightsPrompt>,
        with command: Command,
        named name: String
    ) -> CommandOutcome {
        guard name == "ACCEPT" else { return .badState }
        open.answer(open.prompt.consent)
        return .answered
    }
}

/// The reason why `chat` of SET_ACCESS_RIGHTS is refused.
private struct ChoiceError: Error {
    let text: String
}

extension Consent {
    /// Grants the optional rights of `chat`.
    fileprivate mutating func choose(_ command: Command) throws(ChoiceError) {
        var names: [String] = []
        switch command.array("chat") {
        case .missing: throw ChoiceError(text: "'chat' cannot be undefined")
        case .invalid: throw ChoiceError(text: "Invalid 'chat' data")
        case .value(let entries):
            for entry in entries {
                guard let name = entry.string else {
                    throw ChoiceError(text: "Entry in 'chat' data needs to be string")
                }
                names.append(name)
            }
        }
        do throws(Refusal) {
            try choose(names)
        } catch {
            throw ChoiceError(text: error.rawValue)
        }
    }
}

struct AccessRightsMessage: Message {
    static let name: StaticString = "ACCESS_RIGHTS"
    let consent: Consent
    var error: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.object("chat") { chat in
            chat.member("required", consent.requiredNames)
            chat.member("optional", consent.optionalNames)
            chat.member("effective", consent.effectiveNames)
        }
        if let info = consent.transactionInfo { object.member("transactionInfo", info) }
        writeAuxiliaryData(to: &object)
    }

    /// `aux`: the values that the card compares.
    private func writeAuxiliaryData(to object: inout JSONWriter) {
        let values: [(StaticString, String?)] = [
            ("ageVerificationDate", consent.ageVerificationDate),
            ("requiredAge", consent.requiredAge.map { String($0) }),
            ("validityDate", consent.validityDate),
            ("communityId", consent.communityID.map { Hex.encode($0) }),
        ]
        let present = values.compactMap { name, value in value.map { (name, $0) } }
        guard !present.isEmpty else { return }
        object.object("aux") { aux in
            for (name, value) in present { aux.member(name, value) }
        }
    }
}

/// CERTIFICATE: the certificate of the service.
struct CertificateMessage: Message {
    static let name: StaticString = "CERTIFICATE"
    let certificate: Consent.Certificate

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.object("description") { description in
            description.member("subjectName", certificate.subjectName)
            description.member("subjectUrl", certificate.subjectURL)
            description.member("issuerName", certificate.issuerName)
            description.member("issuerUrl", certificate.issuerURL)
            description.member("purpose", certificate.purpose)
            description.member("termsOfUsage", certificate.termsOfUsage)
        }
        object.object("validity") { validity in
            validity.member("effectiveDate", certificate.effectiveDate)
            validity.member("expirationDate", certificate.expirationDate)
        }
    }
}
