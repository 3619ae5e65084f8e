// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
import Crypto
import ISO7816
package import Text

/// EF.CardAccess: the protocols of a card, readable without a password. TR-03110-3 A.1.2.
package struct CardAccess: Sendable, Equatable {
    /// The structure as the card sent it, without what follows it in the file.
    package let bytes: [UInt8]
    package let securityInfos: SecurityInfos
    /// The first supported PACE variant, since the order is the preference of the card.
    package let pace: PACEParameters

    package static let shortFileID: UInt8 = 0x1C

    /// Reads the file; nil when it has no supported PACE variant: version 2, standardized elliptic curve, generic mapping
    /// and AES.
    /// - Throws: `Malformed`.
    package init?(_ bytes: [UInt8]) throws(Malformed) {
        var reader = BERReader(bytes)
        _ = try reader.next()
        let structure = Array(bytes.dropLast(reader.remainder.count))
        let infos = try SecurityInfos(structure)
        guard let pace = infos.pace.lazy.compactMap(\.eidParameters).first else { return nil }
        self.bytes = structure
        securityInfos = infos
        self.pace = pace
    }
}

extension PACEInfo {
    /// The variant if eID cards have it: version 2, standardized elliptic curve, generic mapping and AES. Others are nil.
    package var eidParameters: PACEParameters? {
        guard let parameters, parameters.mapping == .generic, parameters.curve != nil,
            parameters.cipher != .tripleDES
        else { return nil }
        return parameters
    }
}
