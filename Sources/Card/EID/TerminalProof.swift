// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816

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
        (self.chain, self.auxiliaryData) = (chain, auxiliaryData)
        (self.ephemeralKey, self.signature) = (ephemeralKey, signature)
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

    package init(nonce: [UInt8], token: [UInt8]) {
        (self.nonce, self.token) = (nonce, token)
    }
}
