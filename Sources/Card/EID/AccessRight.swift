// SPDX-License-Identifier: GPL-3.0-or-later

/// A right of an authentication terminal. The raw value is the number of the bit in the CHAT; 0 is the least significant.
/// TR-03110-4 2.2.3.2, table 4.
package enum AccessRight: UInt8, Sendable, CaseIterable {
    case ageVerification = 0
    case communityIDVerification
    case restrictedIdentification
    case privilegedTerminal
    case canAllowed
    case pinManagement
    case installCertificate
    case installQualifiedCertificate
    case readDocumentType = 8
    case readIssuingState
    case readDateOfExpiry
    case readGivenNames
    case readFamilyName
    case readArtisticName
    case readDoctoralDegree
    case readDateOfBirth
    case readPlaceOfBirth
    case readNationality
    case readSex
    case readOptionalData
    case readBirthName
    case readWrittenSignature
    case readDateOfIssuance
    case readDataGroup16
    case readAddress
    case readCommunityID
    case readResidencePermitI
    case readResidencePermitII
    case readPhoneNumber
    case readEmailAddress
    case pseudonymousSignature
    case reserved31
    case writeEmailAddress = 32
    case writePhoneNumber
    case writeResidencePermitII
    case writeResidencePermitI
    case writeCommunityID
    case writeAddress

    /// The right to read a data group of the eID application, 1 to 22; nil for another number.
    package static func reading(dataGroup: UInt8) -> AccessRight? {
        (1...22).contains(dataGroup) ? AccessRight(rawValue: dataGroup + 7) : nil
    }

    /// The right to write a data group, 17 to 22; nil for another number.
    package static func writing(dataGroup: UInt8) -> AccessRight? {
        (17...22).contains(dataGroup) ? AccessRight(rawValue: 54 - dataGroup) : nil
    }

    /// The name in the AusweisApp SDK; nil for a right without one.
    package var name: String? {
        switch self {
        case .ageVerification: "AgeVerification"
        case .communityIDVerification: "AddressVerification"
        case .restrictedIdentification: "Pseudonym"
        case .canAllowed: "CanAllowed"
        case .pinManagement: "PinManagement"
        case .readDocumentType: "DocumentType"
        case .readIssuingState: "IssuingCountry"
        case .readDateOfExpiry: "ValidUntil"
        case .readGivenNames: "GivenNames"
        case .readFamilyName: "FamilyName"
        case .readArtisticName: "ArtisticName"
        case .readDoctoralDegree: "DoctoralDegree"
        case .readDateOfBirth: "DateOfBirth"
        case .readPlaceOfBirth: "PlaceOfBirth"
        case .readNationality: "Nationality"
        case .readBirthName: "BirthName"
        case .readAddress: "Address"
        case .readCommunityID: "CommunityID"
        case .readResidencePermitI: "ResidencePermitI"
        case .readResidencePermitII: "ResidencePermitII"
        case .writeResidencePermitII: "WriteResidencePermitII"
        case .writeResidencePermitI: "WriteResidencePermitI"
        case .writeCommunityID: "WriteCommunityID"
        case .writeAddress: "WriteAddress"
        case .privilegedTerminal, .installCertificate, .installQualifiedCertificate, .readSex, .readOptionalData,
            .readWrittenSignature, .readDateOfIssuance, .readDataGroup16, .readPhoneNumber, .readEmailAddress,
            .pseudonymousSignature, .reserved31, .writeEmailAddress, .writePhoneNumber:
            nil
        }
    }

    /// Finds the right with a name of the SDK.
    package init?(name: String) {
        guard let right = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = right
    }
}

/// A set of access rights: the low 38 bits of an authentication terminal's CHAT.
package struct AccessRights: OptionSet, Sendable, Hashable {
    package let rawValue: UInt64

    /// Ignores the bits above 37, which hold the role.
    package init(rawValue: UInt64) { self.rawValue = rawValue & 0x3F_FFFF_FFFF }

    package init(_ rights: some Sequence<AccessRight>) {
        self.init(rawValue: rights.reduce(0) { $0 | 1 << UInt64($1.rawValue) })
    }

    package func contains(_ right: AccessRight) -> Bool { rawValue >> UInt64(right.rawValue) & 1 == 1 }

    /// The rights in the set, the least significant bit first.
    package var rights: [AccessRight] { AccessRight.allCases.filter(contains) }
}
