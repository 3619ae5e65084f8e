// SPDX-License-Identifier: Apache-2.0
public import FoundationEssentials
import Text

/// The service, as its certificate describes it: CERTIFICATE. TR-03110-4 2.2.4.
public struct CertificateDescription: Sendable, Equatable {
    public let issuerName: String
    public let issuerUrl: URL?
    public let purpose: String
    public let subjectName: String
    public let subjectUrl: URL?
    public let termsOfUsage: String
    public let validity: CertificateValidity

    public init(
        issuerName: String,
        issuerUrl: URL?,
        purpose: String,
        subjectName: String,
        subjectUrl: URL?,
        termsOfUsage: String,
        validity: CertificateValidity
    ) {
        self.issuerName = issuerName
        self.issuerUrl = issuerUrl
        self.purpose = purpose
        self.subjectName = subjectName
        self.subjectUrl = subjectUrl
        self.termsOfUsage = termsOfUsage
        self.validity = validity
    }

    /// Reads the message; nil when a name, the purpose or the validity is missing, or a date is wrong.
    init?(_ message: JSON) {
        guard let description = message["description"], let validity = message["validity"],
            let issuerName = description["issuerName"]?.string, let purpose = description["purpose"]?.string,
            let subjectName = description["subjectName"]?.string,
            let termsOfUsage = description["termsOfUsage"]?.string,
            let effective = validity["effectiveDate"]?.string.flatMap(CalendarDate.midnight),
            let expiration = validity["expirationDate"]?.string.flatMap(CalendarDate.midnight)
        else { return nil }
        self.init(
            issuerName: issuerName,
            issuerUrl: description["issuerUrl"]?.string.flatMap { URL(string: $0) },
            purpose: purpose,
            subjectName: subjectName,
            subjectUrl: description["subjectUrl"]?.string.flatMap { URL(string: $0) },
            termsOfUsage: termsOfUsage,
            validity: CertificateValidity(effectiveDate: effective, expirationDate: expiration)
        )
    }
}

/// The first and the last day of a certificate, midnight UTC.
public struct CertificateValidity: Sendable, Equatable {
    public let effectiveDate: Date
    public let expirationDate: Date

    public init(effectiveDate: Date, expirationDate: Date) {
        self.effectiveDate = effectiveDate
        self.expirationDate = expirationDate
    }
}
