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

    /// What a signer's certificate must have.
    package struct Rule: Sendable {
        /// Authorities sign certificates and revocation lists, and nothing else.
        let isByAuthority: Bool
        /// The bit that a key usage must have, if there is a key usage.
        let keyUsage: UInt16
        /// The certificate has one of these extended key usages; without any here it has none.
        let extendedKeyUsages: [[UInt8]]
        /// The types of the signed content, as contents of object identifiers; empty if it is no SignedData.
        let contentTypes: [[UInt8]]
        /// Whether the signer may be bound to types of documents.
        let isOfDocument: Bool

        init(
            isByAuthority: Bool = false,
            keyUsage: UInt16 = 0x8000,
            extendedKeyUsages: [[UInt8]] = [],
            contentTypes: [[UInt8]] = [],
            isOfDocument: Bool = false
        ) {
            self.isByAuthority = isByAuthority
            self.keyUsage = keyUsage
            self.extendedKeyUsages = extendedKeyUsages
            self.contentTypes = contentTypes
            self.isOfDocument = isOfDocument
        }

        /// Whether a certificate is for this use: nobody here knows a critical extension of it otherwise.
        package func permits(_ certificate: DocumentCertificate) -> Bool {
            guard !certificate.hasUnknownRule, certificate.isAuthority == isByAuthority,
                certificate.keyUsage.map({ $0 & keyUsage != 0 }) ?? true
            else { return false }
            if isByAuthority { return true }
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
        }
    }

    /// ICAO 9303-12 7.1.3.
    private static let masterListSigner = OID.icaoSecurity + [3]
    private static let deviationListSigner = OID.icaoSecurity + [8]
}
