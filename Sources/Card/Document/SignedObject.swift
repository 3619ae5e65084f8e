// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess

/// What is signed under the authorities of a country, and who may sign it: the table of rules for every signature that
/// a verdict rests on. `DocumentAnchors.judge` applies it. ICAO 9303-12 4, 7; BSI TR-03129.
package enum SignedObject: Sendable, CaseIterable {
    /// EF.SOD: the hashes of the data groups.
    case securityObject
    /// EF.CardSecurity: the key of PACE with chip authentication mapping.
    case cardSecurity
    case masterList
    case defectList
    case revocationList
    /// The certificate of a signer, or of an authority's next key.
    case certificate
    /// What the issuer of a mobile document signs. ISO/IEC 18013-5, 9.1.2.4.
    case mobileSecurityObject
    /// The authorities of mobile documents that a provider has collected (VICAL). ISO/IEC 18013-5, C.1.7.
    case authorityList
    /// Which mobile documents are revoked, by their places or by their identifiers. ISO/IEC 18013-5, second edition,
    /// 12.3.6.
    case statusList
    case identifierList

    /// Who the authorities of a country are.
    enum Naming: Sendable {
        /// One for each country: a signer of a country whose authority is here must be known to it. ICAO 9303-12 3.
        case oneOfCountry
        /// One or more for each country or state; a site may have some of them. ISO/IEC 18013-5, B.1.
        case manyOfCountry
        /// Anybody.
        case free
    }

    /// What a signer's certificate must have.
    package struct Rule: Sendable {
        /// Authorities sign certificates and revocation lists, and nothing else.
        let isByAuthority: Bool
        /// The bits of which a key usage must have one, if there is a key usage.
        let keyUsage: UInt16
        /// Whether there must be a key usage.
        let requiresKeyUsage: Bool
        /// The certificate has one of these extended key usages; without any here it has none.
        let extendedKeyUsages: [[UInt8]]
        /// The types of the signed content, as contents of object identifiers; empty if it is no SignedData.
        let contentTypes: [[UInt8]]
        /// Whether the signer may be bound to types of documents.
        let isOfDocument: Bool
        /// Extended key usages that forbid this use; then `extendedKeyUsages` says nothing.
        let otherKeyUsages: [[UInt8]]
        /// How the authorities that may certify the signer are named.
        let naming: Naming

        init(
            isByAuthority: Bool = false,
            keyUsage: UInt16 = 0x8000,
            requiresKeyUsage: Bool = false,
            extendedKeyUsages: [[UInt8]] = [],
            contentTypes: [[UInt8]] = [],
            isOfDocument: Bool = false,
            otherKeyUsages: [[UInt8]] = [],
            naming: Naming = .oneOfCountry
        ) {
            self.isByAuthority = isByAuthority
            self.keyUsage = keyUsage
            self.requiresKeyUsage = requiresKeyUsage
            self.extendedKeyUsages = extendedKeyUsages
            self.contentTypes = contentTypes
            self.isOfDocument = isOfDocument
            self.otherKeyUsages = otherKeyUsages
            self.naming = naming
        }

        /// Whether a certificate is for this use: nobody here knows a critical extension of it otherwise.
        package func permits(_ certificate: DocumentCertificate) -> Bool {
            guard !certificate.hasUnknownRule, certificate.isAuthority == isByAuthority,
                certificate.keyUsage.map({ $0 & keyUsage != 0 }) ?? !requiresKeyUsage
            else { return false }
            if isByAuthority { return true }
            guard otherKeyUsages.isEmpty else {
                return !certificate.extendedKeyUsages.contains(where: otherKeyUsages.contains)
            }
            return extendedKeyUsages.isEmpty
                ? certificate.extendedKeyUsages.isEmpty
                : certificate.extendedKeyUsages.contains(where: extendedKeyUsages.contains)
        }
    }

    package var rule: Rule {
        switch self {
        case .securityObject: Rule(contentTypes: SecurityObject.contentTypes, isOfDocument: true)
        case .cardSecurity: Rule(contentTypes: [OID.securityObject], isOfDocument: true)
        case .masterList:
            Rule(extendedKeyUsages: [Self.masterListSigner], contentTypes: [MasterList.contentType])
        case .defectList:
            Rule(
                extendedKeyUsages: [Self.masterListSigner, Self.deviationListSigner, DefectList.contentType],
                contentTypes: [DefectList.contentType]
            )
        case .revocationList: Rule(isByAuthority: true, keyUsage: 0x0200)
        case .certificate: Rule(isByAuthority: true, keyUsage: 0x0400)
        case .mobileSecurityObject:
            Rule(
                requiresKeyUsage: true,
                extendedKeyUsages: [Self.mobileDocumentSigner],
                isOfDocument: true,
                naming: .manyOfCountry
            )
        // Some providers have nonRepudiation.
        case .authorityList:
            Rule(
                keyUsage: 0xC000,
                requiresKeyUsage: true,
                extendedKeyUsages: [Self.authorityListSigner],
                naming: .free
            )
        // Drafts disagree about the usage of these signers; a signer of something else is none.
        case .statusList, .identifierList:
            Rule(
                requiresKeyUsage: true,
                otherKeyUsages: [Self.mobileDocumentSigner, Self.mobileDocumentReader, Self.authorityListSigner],
                naming: .manyOfCountry
            )
        }
    }

    /// ISO/IEC 18013-5, annex B: 1.0.18013.5.1.2, .6 and .8.
    private static let mobileDocument: [UInt8] = [0x28, 0x81, 0x8C, 0x5D, 0x05, 0x01]
    private static let mobileDocumentSigner = mobileDocument + [2]
    private static let mobileDocumentReader = mobileDocument + [6]
    private static let authorityListSigner = mobileDocument + [8]

    /// ICAO 9303-12 7.1.3.
    private static let masterListSigner = OID.icaoSecurity + [3]
    private static let deviationListSigner = OID.icaoSecurity + [8]
}
