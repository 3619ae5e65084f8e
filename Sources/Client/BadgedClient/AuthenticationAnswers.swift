// SPDX-License-Identifier: Apache-2.0
import Text
import Wire

/// What a service asks for: ACCESS_RIGHTS. Rights are names of the SDK, such as `FamilyName`.
public struct AccessRights: Sendable, Equatable {
    /// The service does not go on without them.
    public var required: [String]
    /// Those that can be struck out.
    public var optional: [String]
    /// Those that the service will have when they are accepted now.
    public var effective: [String]
    /// A text of the service about this authentication.
    public var transactionInfo: String?
    /// The age that the card is to confirm, in years.
    public var requiredAge: Int?
    /// Digits of the municipality that the card is to confirm.
    public var communityID: String?

    public init(
        required: [String],
        optional: [String] = [],
        effective: [String],
        transactionInfo: String? = nil,
        requiredAge: Int? = nil,
        communityID: String? = nil
    ) {
        (self.required, self.optional, self.effective) = (required, optional, effective)
        (self.transactionInfo, self.requiredAge, self.communityID) = (transactionInfo, requiredAge, communityID)
    }
}

/// Who asks: CERTIFICATE. What the service has not said is empty.
public struct ServiceCertificate: Sendable, Equatable {
    public var subjectName: String
    public var subjectURL: String
    public var issuerName: String
    public var issuerURL: String
    public var termsOfUsage: String
    public var purpose: String
    /// `yyyy-MM-dd`
    public var effectiveDate: String
    public var expirationDate: String

    public init(
        subjectName: String,
        subjectURL: String = "",
        issuerName: String = "",
        issuerURL: String = "",
        termsOfUsage: String = "",
        purpose: String = "",
        effectiveDate: String = "",
        expirationDate: String = ""
    ) {
        (self.subjectName, self.subjectURL) = (subjectName, subjectURL)
        (self.issuerName, self.issuerURL) = (issuerName, issuerURL)
        (self.termsOfUsage, self.purpose) = (termsOfUsage, purpose)
        (self.effectiveDate, self.expirationDate) = (effectiveDate, expirationDate)
    }
}

/// How an authentication ended: the last AUTH.
public struct AuthenticationResult: Sendable, Equatable {
    /// URI of the eCard-API; it ends in `#ok` when the service has what it asked for.
    public var major: String
    public var minor: String?
    /// What happened, and what kind of error that is.
    public var message: String?
    public var description: String?
    /// A name from the list of failure reasons.
    public var reason: String?
    /// Where the browser goes on, also after an error.
    public var url: String?

    public init(
        major: String,
        minor: String? = nil,
        message: String? = nil,
        description: String? = nil,
        reason: String? = nil,
        url: String? = nil
    ) {
        (self.major, self.minor, self.message) = (major, minor, message)
        (self.description, self.reason, self.url) = (description, reason, url)
    }

    public var isSuccess: Bool { major.hasSuffix("#ok") }
}

extension AccessRights {
    init?(_ json: JSON) {
        guard let chat = json["chat"] else { return nil }
        func names(_ key: String) -> [String]? { chat[key]?.array?.compactMap(\.string) }
        guard let required = names("required"), let optional = names("optional"), let effective = names("effective")
        else { return nil }
        self.init(
            required: required,
            optional: optional,
            effective: effective,
            transactionInfo: json["transactionInfo"]?.string,
            requiredAge: json["aux"]?["requiredAge"]?.string.flatMap { Int($0) },
            communityID: json["aux"]?["communityId"]?.string
        )
    }
}

extension ServiceCertificate {
    init?(_ json: JSON) {
        guard let description = json["description"], let name = description["subjectName"]?.string else { return nil }
        func text(_ key: String) -> String { description[key]?.string ?? "" }
        self.init(
            subjectName: name,
            subjectURL: text("subjectUrl"),
            issuerName: text("issuerName"),
            issuerURL: text("issuerUrl"),
            termsOfUsage: text("termsOfUsage"),
            purpose: text("purpose"),
            effectiveDate: json["validity"]?["effectiveDate"]?.string ?? "",
            expirationDate: json["validity"]?["expirationDate"]?.string ?? ""
        )
    }
}

extension AuthenticationResult {
    init?(_ json: JSON) {
        guard let result = json["result"], let major = result["major"]?.string else { return nil }
        self.init(
            major: major,
            minor: result["minor"]?.string,
            message: result["message"]?.string,
            description: result["description"]?.string,
            reason: result["reason"]?.string,
            url: json["url"]?.string
        )
    }
}
