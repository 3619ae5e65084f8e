// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
package import Crypto
package import ISO7816

/// A signature algorithm of certificates and of signed files. ICAO 9303-12 4.4; RFC 4055, RFC 5758, TR-03111 5.2.
package struct SignatureAlgorithm: Sendable, Equatable {
    package enum Scheme: Sendable, Equatable {
        case pkcs1
        case pss(RSAPublicKey.PSSParameters)
        case ecdsa
        /// r and s at full length instead of DER.
        case ecdsaPlain
    }

    package let scheme: Scheme
    package let digest: DigestAlgorithm

    /// The words of the protocol, such as `ecdsa-sha256`.
    package var name: String {
        let digest = "\(digest)"
        return switch scheme {
        case .pkcs1: "rsa-\(digest)"
        case .pss: "rsapss-\(digest)"
        case .ecdsa, .ecdsaPlain: "ecdsa-\(digest)"
        }
    }

    /// Reads an AlgorithmIdentifier; nil for an unknown one.
    ///
    /// `digest` is the digest of a SignerInfo, which decides when the identifier names only a kind of key.
    package init?(_ algorithm: BERTLV, digest given: DigestAlgorithm? = nil) {
        guard algorithm.tag == 0x30, let fields = try? algorithm.children, let identifier = fields.first,
            identifier.tag == 0x06, fields.count <= 2
        else { return nil }
        let id = identifier.value
        if id == Self.pss {
            guard let parameters = Self.pssParameters(fields.dropFirst().first) else { return nil }
            scheme = .pss(parameters)
            digest = parameters.digest
        } else if let known = Self.pkcs1[id] {
            scheme = .pkcs1
            digest = known
        } else if let known = Self.ecdsa[id] {
            scheme = .ecdsa
            digest = known
        } else if let known = Self.plain.digest(of: id) {
            scheme = .ecdsaPlain
            digest = known
        } else if let given, id == Self.rsaEncryption {
            scheme = .pkcs1
            digest = given
        } else if let given, id == Self.ecPublicKey {
            scheme = .ecdsa
            digest = given
        } else {
            return nil
        }
    }

    /// Verifies a signature; false for a wrong one, and for a key of another kind.
    /// - Throws: only when libcrypto fails.
    package func verify(
        _ signature: [UInt8],
        of message: [UInt8],
        with key: PublicKeyInfo
    ) throws(CryptoError) -> Bool {
        switch (scheme, key) {
        case (.pkcs1, .rsa(let key)):
            if try key.verify(signature, of: message, digest: digest) { return true }
            return try verify(withoutNull: signature, of: message, with: key)
        case (.pss(let parameters), .rsa(let key)):
            return try key.verify(signature, of: message, pss: parameters)
        case (.pss(let parameters), .rsaPSS(let key, let least)):
            // RFC 4055 3.3.
            let isAllowed = least.map { least in
                parameters.digest == least.digest && parameters.maskDigest == least.maskDigest
                    && parameters.saltLength >= least.saltLength
            }
            return isAllowed ?? true ? try key.verify(signature, of: message, pss: parameters) : false
        case (.ecdsa, .elliptic(let key)):
            return try ECDSA.verify(der: signature, of: message, with: key, digest: digest)
        case (.ecdsaPlain, .elliptic(let key)):
            return try ECDSA.verify(signature, of: message, with: key, digest: digest)
        case (.pkcs1, _), (.pss, _), (.ecdsa, _), (.ecdsaPlain, _):
            return false
        }
    }

    /// Verifies a signature whose DigestInfo has no parameters, which verifiers accept as well as NULL. libcrypto does not.
    /// RFC 8017 9.2, note 1.
    private func verify(
        withoutNull signature: [UInt8],
        of message: [UInt8],
        with key: RSAPublicKey
    ) throws(CryptoError) -> Bool {
        guard let identifier = Self.digests.first(where: { $0.value == digest })?.key,
            signature.count == key.modulus.count, let recovered = try key.recover(signature)
        else { return false }
        let algorithm = BERTLV(0x30, [BERTLV(0x06, identifier)])
        let info = BERTLV(0x30, [algorithm, BERTLV(0x04, try digest.hash(message))]).encoded
        // At least 8 bytes of padding.
        guard info.count + 11 <= recovered.count else { return false }
        let padding = [UInt8](repeating: 0xFF, count: recovered.count - info.count - 3)
        return recovered == [0x00, 0x01] + padding + [0x00] + info
    }

    /// Reads the AlgorithmIdentifier of a digest; nil for an unknown one.
    package static func digest(_ algorithm: BERTLV) -> DigestAlgorithm? {
        guard algorithm.tag == 0x30, let fields = try? algorithm.children, let identifier = fields.first,
            identifier.tag == 0x06, fields.count <= 2
        else { return nil }
        return digests[identifier.value]
    }

    /// RSASSA-PSS-params; absent fields mean SHA-1 and a salt of 20 bytes. RFC 4055 3.1.
    static func pssParameters(_ object: BERTLV?) -> RSAPublicKey.PSSParameters? {
        var parameters = RSAPublicKey.PSSParameters(digest: .sha1, maskDigest: .sha1, saltLength: 20)
        guard let object, object.tag != 0x05 else { return parameters }
        guard object.tag == 0x30, let fields = try? object.children, fields.count <= 4 else { return nil }
        for field in fields {
            guard let content = try? BERTLV(field.value) else { return nil }
            switch field.tag {
            case 0xA0:
                guard let digest = digest(content) else { return nil }
                parameters.digest = digest
            case 0xA1:
                guard let mask = try? content.children, mask.count == 2, mask[0] == BERTLV(0x06, maskFunction),
                    let digest = digest(mask[1])
                else { return nil }
                parameters.maskDigest = digest
            case 0xA2:
                guard content.tag == 0x02, (1...2).contains(content.value.count), content.value[0] & 0x80 == 0 else {
                    return nil
                }
                parameters.saltLength = content.value.reduce(0) { $0 << 8 | Int($1) }
            case 0xA3:
                guard content == BERTLV(0x02, [1]) else { return nil }
            default: return nil
            }
        }
        return parameters
    }

    private static let rsa: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01]
    private static let rsaEncryption = rsa + [1]
    private static let maskFunction = rsa + [8]
    private static let pss = rsa + [10]
    private static let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
    private static let pkcs1: [[UInt8]: DigestAlgorithm] = [
        rsa + [5]: .sha1, rsa + [14]: .sha224, rsa + [11]: .sha256, rsa + [12]: .sha384, rsa + [13]: .sha512,
    ]
    private static let ecdsa: [[UInt8]: DigestAlgorithm] = {
        let x962: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04]
        return [
            x962 + [1]: .sha1, x962 + [3, 1]: .sha224, x962 + [3, 2]: .sha256, x962 + [3, 3]: .sha384,
            x962 + [3, 4]: .sha512,
        ]
    }()
    /// ecdsa-plain-signatures: bsi-de 1.1.4.1.
    package static let plain = DigestProtocol(family: OID.bsi + [1, 1, 4, 1])
    private static let digests: [[UInt8]: DigestAlgorithm] = {
        let nist: [UInt8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02]
        return [
            [0x2B, 0x0E, 0x03, 0x02, 0x1A]: .sha1, nist + [4]: .sha224, nist + [1]: .sha256, nist + [2]: .sha384,
            nist + [3]: .sha512,
        ]
    }()
}
