// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ChipAccess
import Concurrency
import EID
import EService
import ISO7816
import Readers

/// The requirements of a workflow for an eID card and its reader.
struct EIDRequirements: CardRequirements {
    var needsExtendedLength: Bool
    /// Whether the workflow asks for the PIN. It then cannot use a card whose PIN is deactivated or permanently
    /// blocked.
    var needsPIN: Bool
    /// The accepted types; nil for all.
    var eidTypes: Set<EIDType>?
    /// Decides about PINs without a person; nil: there are none.
    var automaticPINs: AutomaticPINs?
    /// The bytes of the description of the service, which a reader with a keypad shows.
    var descriptionLength = 0

    var wrongKind: CardObstacle { .noEIDCard }

    func obstacle(of profile: EIDCardProfile, in reader: ReaderDescription) -> CardObstacle? {
        if let eidTypes, !eidTypes.contains(profile.eid.eidType) { return .unacceptedType }
        if needsPIN {
            if profile.eid.status.deactivated { return .deactivated }
            if profile.isInoperative { return .inoperative }
        }
        if needsExtendedLength, !reader.hasExtendedLength { return .noExtendedLength }
        if reader.hasKeypad, descriptionLength > KeypadPACERequest.maximumDescription { return .longDescription }
        return nil
    }

    /// Selects the application and reads the state of the PIN.
    func open(_ lease: CardLease, _ profile: EIDCardProfile) async throws(CardError) -> HeldEIDCard {
        let card = HeldEIDCard(lease, profile, automaticPINs)
        do throws(ChipError) {
            try await card.open()
        } catch {
            guard case .card(let error) = error else { throw .other("\(error)") }
            throw error
        }
        return card
    }
}

extension EIDRequirements {
    /// An authentication needs extended length, because certificates and EF.CardSecurity exceed short commands and
    /// answers.
    init(_ request: AuthenticationRequest, _ consent: Consent, _ automaticPINs: AutomaticPINs) {
        self.init(
            needsExtendedLength: true,
            needsPIN: !consent.isByCAN,
            eidTypes: request.acceptedEIDTypes,
            automaticPINs: automaticPINs,
            descriptionLength: request.description.encoded.count
        )
    }
}

extension EIDProfile {
    /// A profile without a type has the type of a card. TR-03110-3 A.1.1.10.
    fileprivate var eidType: EIDType {
        switch cardAccess.securityInfos.mobileEIDType {
        case nil: .cardCertified
        case .certifiedSecureElement: .seCertified
        case .endorsedSecureElement: .seEndorsed
        case .hardwareKeyStore: .hwKeyStore
        }
    }
}
