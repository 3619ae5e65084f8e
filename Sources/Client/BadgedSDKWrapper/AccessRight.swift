// SPDX-License-Identifier: Apache-2.0

/// A right that a service may ask for: to read, check or write data. The raw value is the name in ACCESS_RIGHTS.
public enum AccessRight: String, Sendable, CaseIterable {
    case Address, BirthName, FamilyName, GivenNames, PlaceOfBirth, DateOfBirth, DoctoralDegree, ArtisticName, Pseudonym
    case ValidUntil, Nationality, IssuingCountry, DocumentType, ResidencePermitI, ResidencePermitII, CommunityID
    case AddressVerification, AgeVerification
    case WriteAddress, WriteCommunityID, WriteResidencePermitI, WriteResidencePermitII
    case CanAllowed, PinManagement
}
