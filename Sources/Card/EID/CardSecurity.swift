// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// EF.CardSecurity: the card's signed SecurityInfos. TR-03110-3 A.1.2.5.
///
/// The signature is not checked here: that is the duty of who relies on the file, the eID-Server.
package struct CardSecurity: Sendable, Equatable {
    /// The SET OF SecurityInfo, encoded.
    package let content: [UInt8]
    package let securityInfos: SecurityInfos
    /// The SignedData, encoded.
    package let bytes: [UInt8]

    package static let shortFileID: UInt8 = 0x1D

    /// Takes the infos out of a CMS SignedData; bytes after it, with which cards fill up the file, are left out.
    /// RFC 5652 5.1.
    /// - Throws: `BERError`, `.invalidTag` when it is something else.
    package init(_ bytes: [UInt8]) throws(BERError) {
        var reader = BERReader(bytes)
        let contentInfo = try Self.children(of: try reader.next(), 0x30)
        guard contentInfo.count == 2, contentInfo[0] == BERTLV(0x06, Self.signedData) else { throw .invalidTag }
        let wrapped = try Self.children(of: contentInfo[1], 0xA0)
        guard wrapped.count == 1 else { throw .invalidTag }
        let signed = try Self.children(of: wrapped[0], 0x30)
        guard signed.count >= 4 else { throw .invalidTag }
        let encapsulated = try Self.children(of: signed[2], 0x30)
        guard encapsulated.count == 2, encapsulated[0] == BERTLV(0x06, OID.bsi + [3, 2, 1]) else { throw .invalidTag }
        let octets = try Self.children(of: encapsulated[1], 0xA0)
        guard octets.count == 1, octets[0].tag == 0x04 else { throw .invalidTag }
        (content, self.bytes) = (octets[0].value, Array(bytes.dropLast(reader.remainder.count)))
        securityInfos = try SecurityInfos(content)
    }

    /// 1.2.840.113549.1.7.2.
    private static let signedData: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]

    private static func children(of object: BERTLV, _ tag: UInt32) throws(BERError) -> [BERTLV] {
        guard object.tag == tag else { throw .invalidTag }
        return try object.children
    }
}
