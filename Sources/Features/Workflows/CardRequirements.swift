// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import EService

/// What a workflow needs of a card and its reader.
struct CardRequirements: Sendable {
    var needsExtendedLength: Bool
    /// The PIN will be asked for: a card whose PIN is switched off, or blocked for good, is of no use.
    var needsPIN: Bool
    /// nil: any.
    var eidTypes: Set<EIDType>?

    func accepts(_ profile: EIDProfile) -> Bool {
        guard let eidTypes else { return true }
        return eidTypes.contains(profile.eidType)
    }
}

extension CardRequirements {
    /// For an authentication: certificates and EF.CardSecurity are longer than short commands and answers.
    init(_ request: AuthenticationRequest, _ consent: Consent) {
        self.init(
            needsExtendedLength: true,
            needsPIN: !consent.isByCAN,
            eidTypes: request.acceptedEIDTypes
        )
    }
}

extension EIDProfile {
    /// A card that does not say is a card. TR-03110-3 A.1.1.10.
    fileprivate var eidType: EIDType {
        switch cardAccess.securityInfos.mobileEIDType {
        case nil: .cardCertified
        case .certifiedSecureElement: .seCertified
        case .endorsedSecureElement: .seEndorsed
        case .hardwareKeyStore: .hwKeyStore
        }
    }
}
