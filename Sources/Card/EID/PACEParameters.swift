// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// A variant of PACE with an elliptic curve, generic mapping and AES. TR-03110-3 A.1.1.1.
package struct PACEParameters: Sendable, Hashable {
    package var curve: Curve
    package var cipher: AES

    package init(curve: Curve, cipher: AES) {
        (self.curve, self.cipher) = (curve, cipher)
    }

    /// id-PACE-ECDH-GM.
    private static let protocols = CipherProtocol(family: OID.pace + [2])

    /// The content of the object identifier id-PACE-ECDH-GM-AES-CBC-CMAC-128, -192 or -256.
    package var protocolID: [UInt8] { Self.protocols.protocolID(cipher) }

    /// Finds the variant of an object identifier and a parameter id. Returns nil for other mappings, Diffie-Hellman over
    /// integers, Triple DES, and other domain parameters.
    package init?(protocolID: [UInt8], parameterID: UInt8) {
        guard let cipher = Self.protocols.cipher(of: protocolID), let curve = Curve(rawValue: parameterID) else {
            return nil
        }
        self.init(curve: curve, cipher: cipher)
    }

    /// The parameter id: data object 84.
    package var parameterID: UInt8 { curve.rawValue }
}
