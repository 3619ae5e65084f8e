// SPDX-License-Identifier: Apache-2.0

/// What a service may want to read from the card, or have checked or written; the raw value is the name in ACCESS_RIGHTS.
public enum AccessRight: String, Sendable, CaseIterable {
    case Address, BirthName, FamilyName, GivenNames, PlaceOfBirth, DateOfBirth, DoctoralDegree, ArtisticName, Pseudonym
    case ValidUntil, Nationality, IssuingCountry, DocumentType, ResidencePermitI, ResidencePermitII, CommunityID
    case AddressVerification, AgeVerification
    case WriteAddress, WriteCommunityID, WriteResidencePermitI, WriteResidencePermitII
    case CanAllowed, PinManagement
}
