// SPDX-License-Identifier: GPL-3.0-or-later
package import EID

/// What a service asks for, checked as far as it can be without a card. TR-03112-7, 3.6.4.1, EAC1InputType.
package struct AuthenticationRequest: Sendable, Equatable {
    /// Role `terminal`, terminal type `authenticationTerminal`.
    package let terminalCertificate: CVCertificate
    /// Its issuer.
    package let documentVerifier: CVCertificate
    package let description: CertificateDescription
    /// The rights without which the service does not go on; nil: not sent.
    package let requiredCHAT: CHAT?
    /// The rights that the user may strike out; nil: not sent.
    package let optionalCHAT: CHAT?
    /// What the card shall compare.
    package let auxiliaryData: AuxiliaryData?
    /// Text for the user, white space collapsed.
    package let transactionInfo: String?
    /// The kinds of eID that the service accepts.
    package let acceptedEIDTypes: Set<EIDType>
    /// From which the chain for the card is built.
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
        (self.terminalCertificate, self.documentVerifier) = (terminalCertificate, documentVerifier)
        (self.description, self.requiredCHAT, self.optionalCHAT) = (description, requiredCHAT, optionalCHAT)
        (self.auxiliaryData, self.transactionInfo) = (auxiliaryData, transactionInfo)
        (self.acceptedEIDTypes, self.certificates) = (acceptedEIDTypes, certificates)
    }
}

/// Where the chip of an eID lives. TR-03112-7, AcceptedEIDType.
package enum EIDType: String, Sendable, CaseIterable {
    case cardCertified = "CardCertified"
    case seCertified = "SECertified"
    case seEndorsed = "SEEndorsed"
    case hwKeyStore = "HWKeyStore"

    /// When the service does not say.
    package static let defaults: Set<EIDType> = [.cardCertified, .seCertified, .seEndorsed]
}
