// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import EService
import Host
import Server
import Text

/// ACCESS_RIGHTS asks the user which rights the service gets. ACCEPT answers with the consent at that time.
struct AccessRightsPrompt: Prompt {
    typealias Answer = Consent

    var consent: Consent

    var name: StaticString { AccessRightsMessage.name }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        AccessRightsMessage(consent: consent, error: error)
    }

    // MARK: Commands

    static let commands = [
        CommandSpec("GET_ACCESS_RIGHTS", AccessRightsMessage.name, permission: .cards) { call throws(Failure) in
            Reply(AccessRightsMessage(consent: try open(call).prompt.consent))
        },
        CommandSpec("SET_ACCESS_RIGHTS", AccessRightsMessage.name, permission: .cards) { call throws(Failure) in
            let open = try open(call)
            do throws(Failure) {
                try open.prompt.consent.choose(call.arguments)
                return Reply(AccessRightsMessage(consent: open.prompt.consent))
            } catch {
                return Reply(AccessRightsMessage(consent: open.prompt.consent, error: error.message))
            }
        },
        CommandSpec("GET_CERTIFICATE", CertificateMessage.name, permission: .cards) { call throws(Failure) in
            Reply(CertificateMessage(request: try open(call).prompt.consent.request))
        },
    ]

    @Loop private static func open(_ call: Call) throws(Failure) -> OpenPrompt<AccessRightsPrompt> {
        guard let open = call.session.workflow?.prompt(AccessRightsPrompt.self) else { throw .badState }
        return open
    }

    /// Handles ACCEPT.
    func answer(in call: Call) throws(Failure) -> Consent {
        guard call.name == "ACCEPT" else { throw .badState }
        return consent
    }
}

extension Consent {
    /// Grants the optional rights of `chat`.
    fileprivate mutating func choose(_ arguments: Arguments) throws(Failure) {
        let entries = try arguments.sdk("chat", .chat, \.array) ?? []
        let names = entries.compactMap(\.string)
        guard names.count == entries.count else {
            throw Failure(.wrongArgument, "Entry in 'chat' data needs to be string")
        }
        try choose(names)
    }
}

struct AccessRightsMessage: Message {
    static let name: StaticString = "ACCESS_RIGHTS"
    let consent: Consent
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.object("chat") { chat in
            chat.member("required", consent.requiredNames)
            chat.member("optional", consent.optionalNames)
            chat.member("effective", consent.effectiveNames)
        }
        if let info = consent.request.transactionInfo { object.member("transactionInfo", info) }
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
    let request: AuthenticationRequest

    func write(to object: inout JSONWriter, _ level: APILevel) {
        let (service, certificate) = (request.description, request.terminalCertificate)
        object.object("description") { description in
            description.member("subjectName", service.subjectName)
            description.member("subjectUrl", service.subjectURL ?? "")
            description.member("issuerName", service.issuerName)
            description.member("issuerUrl", service.issuerURL ?? "")
            description.member("purpose", service.purpose)
            description.member("termsOfUsage", service.termsOfUsage)
        }
        object.object("validity") { validity in
            validity.member("effectiveDate", certificate.effectiveDate.text)
            validity.member("expirationDate", certificate.expirationDate.text)
        }
    }
}
