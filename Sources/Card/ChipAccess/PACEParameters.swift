// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// A variant of PACE. ICAO 9303-11 9.2.1, TR-03110-3 A.1.1.1.
package struct PACEParameters: Sendable, Hashable {
    /// How the nonce becomes a generator. ICAO 9303-11 4.4.3.3.
    package enum Mapping: Sendable, Hashable, CaseIterable {
        case generic
        case integrated
        /// The generic mapping, and a proof of the chip's static key.
        case chipAuthentication
    }

    package var mapping: Mapping
    package var domain: KeyAgreementDomain
    package var cipher: SessionCipher

    package init(mapping: Mapping, domain: KeyAgreementDomain, cipher: SessionCipher) {
        self.mapping = mapping
        self.domain = domain
        self.cipher = cipher
    }

    /// Makes the variant of eID cards: generic mapping, a curve, AES.
    package init(curve: Curve, cipher: AES) {
        self.init(mapping: .generic, domain: .curve(curve), cipher: SessionCipher(cipher))
    }

    /// The curve; nil for integers modulo a prime.
    package var curve: Curve? {
        switch domain {
        case .curve(let curve): curve
        case .integers: nil
        }
    }

    /// The number of key agreement and mapping in the object identifier.
    private var agreement: UInt8 {
        switch (domain, mapping) {
        case (.integers, .generic): 1
        case (.curve, .generic): 2
        case (.integers, .integrated): 3
        case (.curve, .integrated): 4
        case (_, .chipAuthentication): 6
        }
    }

    /// The content of the object identifier.
    package var protocolID: [UInt8] { OID.pace + [agreement, cipher.rawValue] }

    /// Finds the variant of an object identifier and a parameter ID; nil for unknown ones, and if they contradict each
    /// other.
    package init?(protocolID: [UInt8], parameterID: UInt8) {
        guard protocolID.count == OID.pace.count + 2, protocolID.starts(with: OID.pace),
            let last = protocolID.last, let cipher = SessionCipher(rawValue: last),
            let domain = KeyAgreementDomain(parameterID: parameterID)
        else { return nil }
        for mapping in Mapping.allCases {
            self.init(mapping: mapping, domain: domain, cipher: cipher)
            if self.protocolID == protocolID, isDefined { return }
        }
        return nil
    }

    /// Whether the variant exists: the chip authentication mapping needs a curve and AES, and the integrated mapping a
    /// curve whose prime is 3 modulo 4.
    private var isDefined: Bool {
        switch mapping {
        case .generic: true
        case .integrated: curve != .secp224r1
        case .chipAuthentication: curve != nil && cipher != .tripleDES
        }
    }

    /// The parameter id: data object 84.
    package var parameterID: UInt8 { domain.parameterID }
}
