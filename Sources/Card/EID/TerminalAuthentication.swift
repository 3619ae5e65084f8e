// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// Terminal authentication version 2 with ECDSA: the terminal signs a challenge of the card. TR-03110-2 3.3.
package enum TerminalAuthentication {
    /// Bytes of the card's challenge.
    package static let challengeLength = 8

    private static let family: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x02, 0x02]
    private static let digests: [DigestAlgorithm] = [.sha1, .sha224, .sha256, .sha384, .sha512]

    /// Content of id-TA-ECDSA-SHA-1 to -512, 0.4.0.127.0.7.2.2.2.2.n. TR-03110-3 A.6.4.
    package static func protocolID(_ digest: DigestAlgorithm) -> [UInt8] {
        family + [UInt8(truncatingIfNeeded: 1 + (digests.firstIndex(of: digest) ?? 0))]
    }

    /// The hash function of such an object identifier; nil for any other.
    package static func digest(of protocolID: [UInt8]) -> DigestAlgorithm? {
        digests.first { Self.protocolID($0) == protocolID }
    }

    /// What the terminal signs: ID_PICC of the PACE channel, the challenge, Comp() of the ephemeral key for chip
    /// authentication, and the object 67 or nothing.
    package static func message(
        idPICC: [UInt8],
        challenge: [UInt8],
        ephemeralKey: [UInt8],
        auxiliaryData: [UInt8]
    ) -> [UInt8] {
        idPICC + challenge + ephemeralKey + auxiliaryData
    }
}
