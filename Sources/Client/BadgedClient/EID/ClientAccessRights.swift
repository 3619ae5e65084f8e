// SPDX-License-Identifier: Apache-2.0
import Text

/// The data that a service asks for: ACCESS_RIGHTS. Rights have the names of the SDK, such as `FamilyName`.
public struct AccessRights: ServerMessage, NamedMessage {
    static let names = ["ACCESS_RIGHTS"]

    /// The rights that the service needs.
    public var required: [String]
    /// The rights that the user may deny.
    public var optional: [String] = []
    /// The rights that the service gets if the user agrees now.
    public var effective: [String]
    /// A text of the service about this authentication.
    public var transactionInfo: String?
    /// The age, in years, that the card is asked to confirm.
    public var requiredAge: Int?
    /// The day, `yyyy-MM-dd`, at or before which the card's holder must be born to have this age.
    public var ageVerificationDate: String?
    /// The day, `yyyy-MM-dd`, until which the card must be valid at least.
    public var validityDate: String?
    /// The municipality that the card is asked to confirm, in hexadecimal digits, perhaps only the first ones.
    public var communityID: String?
}

extension AccessRights {
    init(_ json: JSON) throws(Malformed) {
        guard let chat = json["chat"], let required = chat["required"]?.strings,
            let optional = chat["optional"]?.strings, let effective = chat["effective"]?.strings
        else { throw Malformed("chat") }
        self.required = required
        self.optional = optional
        self.effective = effective
        transactionInfo = json["transactionInfo"]?.string
        requiredAge = json["aux"]?["requiredAge"]?.string.flatMap { Int($0) }
        ageVerificationDate = json["aux"]?["ageVerificationDate"]?.string
        validityDate = json["aux"]?["validityDate"]?.string
        communityID = json["aux"]?["communityId"]?.string
    }
}

/// The service that asks, as its certificate describes it: CERTIFICATE. Texts that are missing there are empty.
public struct ServiceCertificate: ServerMessage, NamedMessage {
    static let names = ["CERTIFICATE"]

    public var subjectName: String
    public var subjectURL = ""
    public var issuerName = ""
    public var issuerURL = ""
    public var termsOfUsage = ""
    public var purpose = ""
    /// The first day, `yyyy-MM-dd`.
    public var effectiveDate = ""
    /// The last day, `yyyy-MM-dd`.
    public var expirationDate = ""
}

extension ServiceCertificate {
    init(_ json: JSON) throws(Malformed) {
        guard let description = json["description"], let name = description["subjectName"]?.string else {
            throw Malformed("description")
        }
        func text(_ key: String) -> String { description[key]?.string ?? "" }
        subjectName = name
        subjectURL = text("subjectUrl")
        issuerName = text("issuerName")
        issuerURL = text("issuerUrl")
        termsOfUsage = text("termsOfUsage")
        purpose = text("purpose")
        effectiveDate = json["validity"]?["effectiveDate"]?.string ?? ""
        expirationDate = json["validity"]?["expirationDate"]?.string ?? ""
    }
}

extension AccessRights: Prompt {
    func ask(_ open: OpenQuestion) async {
        guard let user = await open.user(as: (any EIDUser).self) else { return }
        let connection = open.connection
        do throws(ClientError) {
            let request = ConsentRequest(rights: self, service: try await connection.certificate())
            let chosen = await user.agree(to: request)
            guard open.isOpen else { return }
            guard let chosen else { return await open.cancel() }
            let granted = Set(chosen).intersection(optional)
            if granted != Set(effective).intersection(optional) {
                try await connection.setAccessRights(granted.sorted())
            }
            try await connection.accept()
        } catch {
            if open.isOpen { await open.cancel(because: error) }
        }
    }
}
