// SPDX-License-Identifier: GPL-3.0-or-later
package import CountryAuthorities
package import EID

/// The request of a service, after all checks that need no card. TR-03112-7, 3.6.4.1, EAC1InputType.
package struct AuthenticationRequest: Sendable, Equatable {
    /// Role `terminal`, terminal type `authenticationTerminal`.
    package let terminalCertificate: CVCertificate
    /// The issuer of the terminal certificate.
    package let documentVerifier: CVCertificate
    package let description: CertificateDescription
    /// The rights that the service requires; nil when it sent none.
    package let requiredCHAT: CHAT?
    /// The rights that the user may refuse; nil when the service sent none.
    package let optionalCHAT: CHAT?
    /// Data for the card to compare.
    package let auxiliaryData: AuxiliaryData?
    /// Text for the user, with single blanks as its only white space.
    package let transactionInfo: String?
    /// The kinds of eID that the service accepts.
    package let acceptedEIDTypes: Set<EIDType>
    /// The certificates from which the chain for the card is built.
    package let certificates: CVCertificatePool

    package init(
        terminalCertificate: CVCertificate,
        documentVerifier: CVCertificate,
        description: CertificateDescription,
        requiredCHAT: CHAT?,
        optionalCHAT: CHAT?,
        auxiliaryData: AuxiliaryData?,
        transactionInfo: String?,
        acceptedEIDTypes: Set<EIDType>,
        certificates: CVCertificatePool
    ) {
        self.terminalCertificate = terminalCertificate
        self.documentVerifier = documentVerifier
        self.description = description
        self.requiredCHAT = requiredCHAT
        self.optionalCHAT = optionalCHAT
        self.auxiliaryData = auxiliaryData
        self.transactionInfo = transactionInfo
        self.acceptedEIDTypes = acceptedEIDTypes
        self.certificates = certificates
    }
}

/// What holds the keys of an eID. TR-03112-7, AcceptedEIDType.
package enum EIDType: String, Sendable, CaseIterable {
    case cardCertified = "CardCertified"
    case seCertified = "SECertified"
    case seEndorsed = "SEEndorsed"
    case hwKeyStore = "HWKeyStore"

    /// The kinds that count when the service names none.
    package static let defaults: Set<EIDType> = [.cardCertified, .seCertified, .seEndorsed]
}
