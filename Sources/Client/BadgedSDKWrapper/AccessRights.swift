// SPDX-License-Identifier: Apache-2.0
public import FoundationEssentials
import Text
import Wire

/// ACCESS_RIGHTS.
public struct AccessRights: Sendable, Equatable {
    public let requiredRights: [AccessRight]
    public let optionalRights: [AccessRight]
    /// Required ones, and those optional ones that are chosen at present.
    public let effectiveRights: [AccessRight]
    /// What the transaction is about, in the service's words.
    public let transactionInfo: String?
    public let auxiliaryData: AuxiliaryData?
    /// Names that are no `AccessRight` of this version, required or optional: whoever shows the rights must show them, too.
    public let unknownRights: [String]

    public init(
        requiredRights: [AccessRight],
        optionalRights: [AccessRight],
        effectiveRights: [AccessRight],
        transactionInfo: String? = nil,
        auxiliaryData: AuxiliaryData? = nil,
        unknownRights: [String] = []
    ) {
        (self.requiredRights, self.optionalRights) = (requiredRights, optionalRights)
        (self.effectiveRights, self.transactionInfo) = (effectiveRights, transactionInfo)
        (self.auxiliaryData, self.unknownRights) = (auxiliaryData, unknownRights)
    }

    /// nil without a `chat`.
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

/// What the verifications compare with: `aux` of ACCESS_RIGHTS. Dates are midnight UTC.
public struct AuxiliaryData: Sendable, Equatable {
    /// Born on this day or before: old enough.
    public let ageVerificationDate: Date?
    /// Years.
    public let requiredAge: Int?
    /// The card must be valid on this day.
    public let validityDate: Date?
    public let communityId: String?

    public init(
        ageVerificationDate: Date? = nil,
        requiredAge: Int? = nil,
        validityDate: Date? = nil,
        communityId: String? = nil
    ) {
        (self.ageVerificationDate, self.requiredAge) = (ageVerificationDate, requiredAge)
        (self.validityDate, self.communityId) = (validityDate, communityId)
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
