// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import Crypto
import ISO7816

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

/// What an eID-Server sends to the card for terminal authentication and chip authentication. TR-03112-7 3.6.4.2.
package struct TerminalProof: Sendable, Equatable {
    /// From the certificate that the card's trust point has signed to the terminal's.
    package let chain: [CVCertificate]
    /// The object 67 as it was sent and signed; empty when there is none.
    package let auxiliaryData: [UInt8]
    /// The terminal's key for chip authentication as an uncompressed point: 04, x, y.
    package let ephemeralKey: [UInt8]
    /// The signature in plain format: r and s at full length. TR-03111 5.2.1.
    package let signature: [UInt8]

    package init(chain: [CVCertificate], auxiliaryData: [UInt8], ephemeralKey: [UInt8], signature: [UInt8]) {
        self.chain = chain
        self.auxiliaryData = auxiliaryData
        self.ephemeralKey = ephemeralKey
        self.signature = signature
    }

    /// Comp() of the ephemeral key: its x coordinate; nil when it is not an uncompressed point. TR-03110-3 A.2.2.3.
    var compressedKey: [UInt8]? {
        guard ephemeralKey.first == 0x04, ephemeralKey.count > 1, ephemeralKey.count % 2 == 1 else { return nil }
        return Array(ephemeralKey[1...(ephemeralKey.count / 2)])
    }
}

/// The card's answer to chip authentication. The eID-Server checks it. TR-03110-3 B.2.
package struct ChipProof: Sendable, Equatable {
    /// Data object 81.
    package let nonce: [UInt8]
    /// Data object 82.
    package let token: [UInt8]
}
