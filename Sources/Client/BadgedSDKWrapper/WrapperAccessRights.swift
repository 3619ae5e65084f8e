// SPDX-License-Identifier: Apache-2.0
public import FoundationEssentials
import Text

/// The rights that a service asks for: ACCESS_RIGHTS.
public struct AccessRights: Sendable, Equatable {
    public let requiredRights: [AccessRight]
    public let optionalRights: [AccessRight]
    /// The required rights, and the optional rights that are chosen now.
    public let effectiveRights: [AccessRight]
    /// A text of the service about the transaction.
    public let transactionInfo: String?
    public let auxiliaryData: AuxiliaryData?
    /// Required and optional rights whose names are no `AccessRight`. An app that shows rights must show these, too.
    public let unknownRights: [String]

    public init(
        requiredRights: [AccessRight],
        optionalRights: [AccessRight],
        effectiveRights: [AccessRight],
        transactionInfo: String? = nil,
        auxiliaryData: AuxiliaryData? = nil,
        unknownRights: [String] = []
    ) {
        self.requiredRights = requiredRights
        self.optionalRights = optionalRights
        self.effectiveRights = effectiveRights
        self.transactionInfo = transactionInfo
        self.auxiliaryData = auxiliaryData
        self.unknownRights = unknownRights
    }

    /// Reads the message; nil when it has no `chat`.
    init?(_ message: JSON) {
        guard let chat = message["chat"], chat.members != nil else { return nil }
        func names(_ member: String) -> [String] { chat[member]?.array?.compactMap(\.string) ?? [] }
        let (required, optional) = (names("required"), names("optional"))
        self.init(
            requiredRights: required.compactMap(AccessRight.init),
            optionalRights: optional.compactMap(AccessRight.init),
            effectiveRights: names("effective").compactMap(AccessRight.init),
            transactionInfo: message["transactionInfo"]?.string,
            auxiliaryData: message["aux"].flatMap(AuxiliaryData.init),
            unknownRights: (required + optional).filter { AccessRight(rawValue: $0) == nil }
        )
    }
}

/// The values that the card is asked to compare: `aux` of ACCESS_RIGHTS. Dates are midnight UTC.
public struct AuxiliaryData: Sendable, Equatable {
    /// The latest date of birth of a person who is old enough.
    public let ageVerificationDate: Date?
    /// The required age in years.
    public let requiredAge: Int?
    /// The day on which the card must be valid.
    public let validityDate: Date?
    public let communityId: String?

    public init(
        ageVerificationDate: Date? = nil,
        requiredAge: Int? = nil,
        validityDate: Date? = nil,
        communityId: String? = nil
    ) {
        self.ageVerificationDate = ageVerificationDate
        self.requiredAge = requiredAge
        self.validityDate = validityDate
        self.communityId = communityId
    }

    init?(_ json: JSON) {
        guard json.members != nil else { return nil }
        self.init(
            ageVerificationDate: json["ageVerificationDate"]?.string.flatMap(CalendarDate.midnight),
            requiredAge: json["requiredAge"].flatMap { $0.int ?? $0.string.flatMap { Int($0) } },
            validityDate: json["validityDate"]?.string.flatMap(CalendarDate.midnight),
            communityId: json["communityId"]?.string
        )
    }
}

/// A right that a service may ask for: to read, check or write data. The raw value is the name in ACCESS_RIGHTS.
public enum AccessRight: String, Sendable, CaseIterable {
    case Address, BirthName, FamilyName, GivenNames, PlaceOfBirth, DateOfBirth, DoctoralDegree, ArtisticName, Pseudonym
    case ValidUntil, Nationality, IssuingCountry, DocumentType, ResidencePermitI, ResidencePermitII, CommunityID
    case AddressVerification, AgeVerification
    case WriteAddress, WriteCommunityID, WriteResidencePermitI, WriteResidencePermitII
    case CanAllowed, PinManagement
}
