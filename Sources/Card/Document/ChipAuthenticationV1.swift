// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
package import Crypto
import ISO7816
import Text

/// Chip authentication of documents: the chip has the private half of a key in DG14. ICAO 9303-11 6.2.
package struct ChipAuthenticationV1: Sendable, Equatable {
    /// The chip's static key.
    package let key: AgreementPublicKey
    package let cipher: SessionCipher
    /// The number of the key that is sent; nil if the chip has one key.
    package let keyID: Int?

    package init(key: AgreementPublicKey, cipher: SessionCipher, keyID: Int?) {
        self.key = key
        self.cipher = cipher
        self.keyID = keyID
    }

    package typealias Fault = PublicKeyInfo.Fault

    /// Chooses a key of DG14 and the strongest cipher for it; nil if the chip offers no chip authentication.
    ///
    /// Without a ChipAuthenticationInfo the cipher is Triple DES. A key without a number fits an info with any number if
    /// it is the only key.
    /// - Throws: `.unsupported` also if all infos have another version, or no key that can be read.
    package static func choose(_ infos: SecurityInfos) throws(Fault) -> ChipAuthenticationV1? {
        let offers = infos.chipAuthentication
        guard !offers.isEmpty || !infos.chipAuthenticationKeys.isEmpty else { return nil }
        var options: [(SessionCipher, ChipAuthenticationKeyInfo)] = []
        for info in offers where info.version == 1 {
            guard let cipher = info.protocolID.last.flatMap(SessionCipher.init(rawValue:)) else { continue }
            let isElliptic = info.protocolID.dropLast().last == 2
            for key in infos.chipAuthenticationKeys where key.isElliptic == isElliptic {
                let isOnly = infos.chipAuthenticationKeys.count == 1
                if key.keyID == info.keyID || isOnly { options.append((cipher, key)) }
            }
        }
        if offers.isEmpty { options = infos.chipAuthenticationKeys.prefix(1).map { (.tripleDES, $0) } }
        var fault = Fault.unsupported
        for (cipher, info) in options.sorted(by: { $0.0.rawValue > $1.0.rawValue }) {
            do throws(PublicKeyInfo.Fault) {
                switch try PublicKeyInfo(info.publicKey) {
                case .elliptic(let key): return .init(key: .curve(key), cipher: cipher, keyID: info.keyID)
                case .integers(let key): return .init(key: .integers(key), cipher: cipher, keyID: info.keyID)
                case .rsa, .rsaPSS: fault = .malformed
                }
            } catch {
                fault = error == .unsupported ? .unsupported : .malformed
            }
        }
        throw fault
    }

    package var domain: KeyAgreementDomain {
        switch key {
        case .curve(let key): .curve(key.curve)
        case .integers(let key): .integers(key.parameters)
        }
    }

    /// The content of the object identifier of id-CA-DH or id-CA-ECDH with the cipher.
    package var protocolID: [UInt8] {
        let agreement: UInt8 =
            switch key {
            case .integers: 1
            case .curve: 2
            }
        return OID.chipAuthentication + [agreement, cipher.rawValue]
    }

    /// Derives the keys of the new channel on either side. ICAO 9303-11 6.2.2.
    package static func agree(
        _ own: borrowing AgreementPrivateKey,
        with peer: AgreementPublicKey,
        cipher: SessionCipher
    ) throws(CryptoError) -> SessionKeys {
        try SessionKeys(sharedSecret: try own.sharedSecret(with: peer), cipher: cipher)
    }
}
