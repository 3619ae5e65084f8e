// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// Terminal authentication version 2 with ECDSA: the terminal signs a challenge of the card. TR-03110-2 3.3.
package enum TerminalAuthentication {
    /// The length of the card's challenge in bytes.
    package static let challengeLength = 8

    /// id-TA-ECDSA.
    private static let protocols = DigestProtocol(family: OID.terminalAuthentication + [2])

    /// The content of id-TA-ECDSA-SHA-1 to -512. TR-03110-3 A.6.4.
    package static func protocolID(_ digest: DigestAlgorithm) -> [UInt8] { protocols.protocolID(digest) }

    /// The hash function of such an object identifier; nil for another identifier.
    package static func digest(of protocolID: [UInt8]) -> DigestAlgorithm? { protocols.digest(of: protocolID) }

    /// Returns the bytes that the terminal signs. These are ID_PICC of the PACE channel, the challenge, Comp() of the
    /// ephemeral key for chip authentication, and the object 67 if there is one.
    package static func message(
        idPICC: [UInt8],
        challenge: [UInt8],
        ephemeralKey: [UInt8],
        auxiliaryData: [UInt8]
    ) -> [UInt8] {
        idPICC + challenge + ephemeralKey + auxiliaryData
    }
}
