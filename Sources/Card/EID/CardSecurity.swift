// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
import ISO7816
package import Text

/// EF.CardSecurity: the card's signed SecurityInfos. TR-03110-3 A.1.2.5.
///
/// The eID-Server checks the signature, since it relies on the file.
package struct CardSecurity: Sendable, Equatable {
    /// The encoded SET OF SecurityInfo.
    package let content: [UInt8]
    package let securityInfos: SecurityInfos
    /// The encoded SignedData.
    package let bytes: [UInt8]

    package static let shortFileID: UInt8 = 0x1D

    /// Reads a CMS SignedData. Bytes after it are ignored, since cards fill up the file. RFC 5652 5.1.
    /// - Throws: `Malformed`; `.invalidTag` for another content.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        guard let (resolved, count) = DefiniteLengths.first(of: bytes) else { throw .invalidLength }
        let contentInfo = try Self.children(of: try BERTLV(resolved), 0x30)
        guard contentInfo.count == 2, contentInfo[0] == BERTLV(0x06, OID.signedData) else { throw .invalidTag }
        let wrapped = try Self.children(of: contentInfo[1], 0xA0)
        guard wrapped.count == 1 else { throw .invalidTag }
        let signed = try Self.children(of: wrapped[0], 0x30)
        guard signed.count >= 4 else { throw .invalidTag }
        let encapsulated = try Self.children(of: signed[2], 0x30)
        guard encapsulated.count == 2, encapsulated[0] == BERTLV(0x06, OID.securityObject) else { throw .invalidTag }
        let octets = try Self.children(of: encapsulated[1], 0xA0)
        guard octets.count == 1, octets[0].tag == 0x04 else { throw .invalidTag }
        content = octets[0].value
        self.bytes = Array(bytes.prefix(count))
        securityInfos = try SecurityInfos(content)
    }

    private static func children(of object: BERTLV, _ tag: UInt32) throws(Malformed) -> [BERTLV] {
        guard object.tag == tag else { throw .invalidTag }
        return try object.children
    }
}
