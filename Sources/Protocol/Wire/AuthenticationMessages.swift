// SPDX-License-Identifier: Apache-2.0
import Text

/// The members of ACCESS_RIGHTS: names of access rights, the most significant first.
package struct AccessRightsState: Sendable, Equatable {
    package var required: [String]
    package var optional: [String]
    package var effective: [String]
    package var transactionInfo: String?
    package var auxiliary: AuxiliaryState

    package init(
        required: [String],
        optional: [String],
        effective: [String],
        transactionInfo: String?,
        auxiliary: AuxiliaryState
    ) {
        (self.required, self.optional, self.effective) = (required, optional, effective)
        (self.transactionInfo, self.auxiliary) = (transactionInfo, auxiliary)
    }

    fileprivate func names(_ key: StaticString, _ names: [String], to writer: inout JSONWriter) {
        writer.key(key)
        writer.beginArray()
        for name in names { writer.string(name) }
        writer.endArray()
    }

    /// `aux` and `chat`.
    func writeBeforeError(to writer: inout JSONWriter) {
        if auxiliary != AuxiliaryState() {
            writer.key("aux")
            writer.beginObject()
            if let date = auxiliary.ageVerificationDate { writer.member("ageVerificationDate", date) }
            if let id = auxiliary.communityID { writer.member("communityId", id) }
            if let age = auxiliary.requiredAge { writer.member("requiredAge", String(age)) }
            if let date = auxiliary.validityDate { writer.member("validityDate", date) }
            writer.endObject()
        }
        writer.key("chat")
        writer.beginObject()
        names("effective", effective, to: &writer)
        names("optional", optional, to: &writer)
        names("required", required, to: &writer)
        writer.endObject()
    }
}

/// What the card is to compare; `aux` of ACCESS_RIGHTS, which is there when one of these is.
package struct AuxiliaryState: Sendable, Equatable {
    /// `yyyy-MM-dd`
    package var ageVerificationDate: String?
    /// In full years; a string on the wire.
    package var requiredAge: Int?
    /// `yyyy-MM-dd`
    package var validityDate: String?
    /// Lower-case hexadecimal digits.
    package var communityID: String?

    package init(
        ageVerificationDate: String? = nil,
        requiredAge: Int? = nil,
        validityDate: String? = nil,
        communityID: String? = nil
    ) {
        (self.ageVerificationDate, self.requiredAge) = (ageVerificationDate, requiredAge)
        (self.validityDate, self.communityID) = (validityDate, communityID)
    }
}

/// The members of CERTIFICATE.
package struct CertificateState: Sendable, Equatable {
    package var issuerName: String
    package var issuerURL: String
    package var subjectName: String
    package var subjectURL: String
    package var termsOfUsage: String
    package var purpose: String
    /// `yyyy-MM-dd`
    package var effectiveDate: String
    package var expirationDate: String

    package init(
        issuerName: String,
        issuerURL: String,
        subjectName: String,
        subjectURL: String,
        termsOfUsage: String,
        purpose: String,
        effectiveDate: String,
        expirationDate: String
    ) {
        (self.issuerName, self.issuerURL) = (issuerName, issuerURL)
        (self.subjectName, self.subjectURL) = (subjectName, subjectURL)
        (self.termsOfUsage, self.purpose) = (termsOfUsage, purpose)
        (self.effectiveDate, self.expirationDate) = (effectiveDate, expirationDate)
    }

    func writeDescription(to writer: inout JSONWriter) {
        writer.key("description")
        writer.beginObject()
        writer.member("issuerName", issuerName)
        writer.member("issuerUrl", issuerURL)
        writer.member("purpose", purpose)
        writer.member("subjectName", subjectName)
        writer.member("subjectUrl", subjectURL)
        writer.member("termsOfUsage", termsOfUsage)
        writer.endObject()
    }

    func writeValidity(to writer: inout JSONWriter) {
        writer.key("validity")
        writer.beginObject()
        writer.member("effectiveDate", effectiveDate)
        writer.member("expirationDate", expirationDate)
        writer.endObject()
    }
}

/// The members of the last AUTH.
package struct AuthResult: Sendable, Equatable {
    /// URIs of the eCard-API.
    package var major: String
    package var minor: String?
    /// What happened in this case, and in cases of this minor result.
    package var message: String?
    package var description: String?
    /// A failure reason of the SDK.
    package var reason: String?
    package var url: String?

    package init(
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

    /// `result` and `url`.
    func write(to writer: inout JSONWriter) {
        writer.key("result")
        writer.beginObject()
        if let description { writer.member("description", description) }
        // Of our own words.
        if description != nil || message != nil { writer.member("language", "en") }
        writer.member("major", major)
        if let message { writer.member("message", message) }
        if let minor { writer.member("minor", minor) }
        if let reason { writer.member("reason", reason) }
        writer.endObject()
        if let url { writer.member("url", url) }
    }
}
