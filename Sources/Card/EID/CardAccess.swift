// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// EF.CardAccess: the file that everybody may read before any protocol. TR-03110-3 A.1.2.
package struct CardAccess: Sendable, Equatable {
    /// The file as the card gave it.
    package let bytes: [UInt8]
    package let securityInfos: SecurityInfos
    /// The variant of the first PACEInfo that we speak; the card's order is its preference.
    package let pace: PACEParameters

    package static let shortFileID: UInt8 = 0x1C

    /// Reads the file; nil when it announces no PACE of version 2 with an elliptic curve of the standardized domain
    /// parameters, generic mapping and AES.
    /// - Throws: `BERError`.
    package init?(_ bytes: [UInt8]) throws(BERError) {
        let infos = try SecurityInfos(bytes)
        guard let pace = infos.pace.lazy.compactMap(\.parameters).first else { return nil }
        (self.bytes, securityInfos, self.pace) = (bytes, infos, pace)
    }
}
