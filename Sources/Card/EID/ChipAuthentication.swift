// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import ISO7816
import Secrets

/// Chip authentication version 2 over elliptic curves: the card proves its static key and both sides get new session
/// keys. TR-03110-2 3.4, TR-03110-3 B.2.
package enum ChipAuthentication {
    /// Bytes of the card's nonce.
    package static let nonceLength = 8

    /// id-CA-ECDH, 0.4.0.127.0.7.2.2.3.2.
    package static let family: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x03, 0x02]

    /// Content of id-CA-ECDH-AES-CBC-CMAC-128, -192 or -256.
    package static func protocolID(_ cipher: AES) -> [UInt8] {
        switch cipher {
        case .aes128: family + [2]
        case .aes192: family + [3]
        case .aes256: family + [4]
        }
    }

    /// The cipher of such an object identifier; nil for any other.
    package static func cipher(of protocolID: [UInt8]) -> AES? {
        AES.allCases.first { Self.protocolID($0) == protocolID }
    }

    /// What one run gives.
    package struct Outcome: ~Copyable, Sendable {
        /// Data object 82: 8 bytes.
        package let token: [UInt8]
        /// Secure messaging goes on with these, its counter at zero.
        package let keys: SessionKeys
    }

    /// Both sides' derivation: the terminal with its ephemeral private key and the card's public one, the card with its
    /// static private key and the terminal's ephemeral public one. TR-03110-3 A.4.2, A.2.3.
    ///
    /// `ephemeral` is the terminal's public key, which the token is made of; `nonce` the card's 8 bytes. Keys on different
    /// curves throw `.invalidPoint`.
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
        let keys = try SessionKeys(sharedSecret: seed, cipher: cipher)
        let object = BERTLV(0x7F49, [BERTLV(0x06, protocolID(cipher)), BERTLV(0x86, ephemeral.uncompressed)])
        return Outcome(token: try CMAC.truncatedTag(object.encoded, key: keys.authentication), keys: keys)
    }
}
