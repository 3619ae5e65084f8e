// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
package import Crypto
import ISO7816
import Text

/// Chip authentication version 2 over elliptic curves: the card proves its static key, and both sides get new session
/// keys. TR-03110-2 3.4, TR-03110-3 B.2.
package enum ChipAuthentication {
    /// The length of the card's nonce in bytes.
    package static let nonceLength = 8

    /// id-CA-ECDH.
    private static let protocols = CipherProtocol(family: OID.chipAuthentication + [2])

    /// The content of id-CA-ECDH-AES-CBC-CMAC-128, -192 or -256.
    package static func protocolID(_ cipher: AES) -> [UInt8] { protocols.protocolID(cipher) }

    /// The cipher of such an object identifier; nil for another identifier.
    package static func cipher(of protocolID: [UInt8]) -> AES? { protocols.cipher(of: protocolID) }

    /// The result of one run.
    package struct Outcome: ~Copyable, Sendable {
        /// The token of the card, data object 82: 8 bytes.
        package let token: [UInt8]
        /// The keys of the new secure messaging, whose counter begins at zero.
        package let keys: SessionKeys
    }

    /// Derives keys and token on either side. The terminal uses its ephemeral private key and the card's public key, the
    /// card its static private key and the terminal's ephemeral public key. TR-03110-3 A.4.2, A.2.3.
    ///
    /// `ephemeral` is the terminal's public key, from which the token is made; `nonce` is the card's 8 bytes. Keys on
    /// different curves throw `.invalidPoint`.
    package static func agree(
        _ own: borrowing ECPrivateKey,
        with peer: ECPublicKey,
        ephemeral: ECPublicKey,
        nonce: [UInt8],
        cipher: AES
    ) throws(CryptoError) -> Outcome {
        let shared = try own.sharedSecret(with: peer)
        let length = shared.count
        let seed = Secret(count: length + nonce.count) { bytes in
            shared.withBytes { bytes.copyMemory(from: $0) }
            for (index, byte) in nonce.enumerated() { bytes[length + index] = byte }
        }
        let keys = try SessionKeys(sharedSecret: seed, cipher: SessionCipher(cipher))
        let object = BERTLV(0x7F49, [BERTLV(0x06, protocolID(cipher)), BERTLV(0x86, ephemeral.uncompressed)])
        return Outcome(token: try CMAC.truncatedTag(object.encoded, key: keys.authentication), keys: keys)
    }
}
