// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// The PACE variant of a card: elliptic curve, generic mapping, AES. TR-03110-3 A.1.1.1.
package struct PACEParameters: Sendable, Hashable {
    package var curve: Curve
    package var cipher: AES

    package init(curve: Curve, cipher: AES) {
        (self.curve, self.cipher) = (curve, cipher)
    }

    /// Content of the object identifier id-PACE-ECDH-GM-AES-CBC-CMAC-128, -192 or -256.
    package var protocolID: [UInt8] {
        let last: UInt8 =
            switch cipher {
            case .aes128: 2
            case .aes192: 3
            case .aes256: 4
            }
        return Self.family + [last]
    }

    /// id-PACE-ECDH-GM: 0.4.0.127.0.7.2.2.4.2.
    package static let family: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07, 0x02, 0x02, 0x04, 0x02]

    /// The variant of an object identifier and a parameter id; nil when it is not one of ours: integrated or chip
    /// authentication mapping, Diffie-Hellman over integers, Triple DES, other domain parameters.
    package init?(protocolID: [UInt8], parameterID: UInt8) {
        guard protocolID.dropLast() == Self.family[...], let curve = Curve(rawValue: parameterID) else { return nil }
        switch protocolID.last {
        case 2: self.init(curve: curve, cipher: .aes128)
        case 3: self.init(curve: curve, cipher: .aes192)
        case 4: self.init(curve: curve, cipher: .aes256)
        default: return nil
        }
    }

    /// Data object 84.
    package var parameterID: UInt8 { curve.rawValue }
}
