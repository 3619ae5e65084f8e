// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// A signature or a MAC in the form of COSE: COSE_Sign1 or COSE_Mac0. RFC 9052, 4.2 and 6.2.
package struct COSEMessage: Sendable {
    /// What the message is, which is a part of the bytes that are signed.
    package enum Context: String, Sendable {
        case signature = "Signature1"
        case mac = "MAC0"

        fileprivate var tag: UInt64 {
            switch self {
            case .signature: 18
            case .mac: 17
            }
        }
    }

    private static let maximumCertificates = 8

    private let context: Context
    /// The protected header as it came, which is signed.
    private let protected: [UInt8]
    /// The number of the algorithm in the registry of COSE.
    package let algorithm: Int64
    /// The type of the payload (16), which CWT of status lists have.
    package let type: String?
    /// The certificates of the header (33) in DER, the signer first. RFC 9360.
    package let certificates: [[UInt8]]
    /// The payload; nil if it is detached.
    package let payload: CBOR?
    /// The signature, r and s at full length, or the MAC.
    package let proof: [UInt8]

    /// Reads a message, with or without its tag.
    /// - Throws: `.malformed`.
    package init(_ item: CBOR, _ context: Context) throws(MdocProblem) {
        guard let parts = item.untagged(context.tag)?.array, parts.count == 4, let protected = parts[0].bytes,
            parts[1].kind == .map, let proof = parts[3].bytes
        else { throw .malformed("no COSE message: \(context.rawValue)") }
        guard parts[2].isNull || parts[2].kind == .bytes else {
            throw .malformed("the payload of COSE is no byte string")
        }
        // RFC 9052, 3.1.
        guard parts[1][2] == nil else { throw .malformed("critical headers of COSE that are not protected") }
        self.context = context
        self.protected = protected
        self.proof = proof
        payload = parts[2].isNull ? nil : parts[2]
        var header: CBOR?
        do { header = protected.isEmpty ? nil : try parts[0].decoded() } catch { throw MdocProblem(error) }
        guard let algorithm = header?[1]?.integer else { throw .malformed("COSE names no algorithm that is protected") }
        // A header that must be understood, and that badged does not know, changes what is signed. RFC 9052, 3.1.
        guard header?[2] == nil else { throw .unsupported("critical headers of COSE") }
        self.algorithm = algorithm
        type = header?[16]?.text
        certificates = try Self.certificates(parts[1][33] ?? header?[33])
    }

    /// One byte string, or an array of them.
    private static func certificates(_ item: CBOR?) throws(MdocProblem) -> [[UInt8]] {
        guard let item else { return [] }
        let list = item.kind == .bytes ? [item] : item.array ?? []
        let certificates = list.compactMap(\.bytes)
        guard !certificates.isEmpty, certificates.count == list.count, certificates.count <= maximumCertificates else {
            throw .malformed("x5chain of COSE has no list of certificates")
        }
        return certificates
    }

    /// Verifies a signature over the payload, or over a detached one. RFC 9052, 4.4.
    /// - Throws: `.unsupported` for an algorithm that badged lacks, `.malformed` for one that does not fit the key.
    package func verify(with key: ECPublicKey, detached: [UInt8]? = nil) throws(MdocProblem) -> Bool {
        guard context == .signature else { throw .malformed("a MAC is no signature") }
        let digest = try Self.digest(algorithm, key.curve)
        let signed = try toBeSigned(detached)
        do {
            return try ECDSA.verify(proof, of: signed, with: key, digest: digest)
        } catch {
            throw .library(error)
        }
    }

    /// Verifies a MAC over the payload, or over a detached one, in constant time. RFC 9052, 6.3.
    package func verify(mac key: borrowing Secret, detached: [UInt8]? = nil) throws(MdocProblem) -> Bool {
        guard context == .mac else { throw .malformed("a signature is no MAC") }
        guard algorithm == 5 else { throw .unsupported("the COSE algorithm \(algorithm)") }
        let signed = try toBeSigned(detached)
        do {
            let expected = try DigestAlgorithm.sha256.hmac(Secret(signed), key: key)
            return ConstantTime.equal(expected, Secret(proof))
        } catch {
            throw .library(error)
        }
    }

    private func toBeSigned(_ detached: [UInt8]?) throws(MdocProblem) -> [UInt8] {
        switch (payload?.bytes, detached) {
        // Some send the payload again that must be detached.
        case (.some(let payload), .some(let other)) where payload == other:
            return Self.toBeSigned(context, protected: protected, payload: payload)
        case (.some(let payload), nil), (nil, .some(let payload)):
            return Self.toBeSigned(context, protected: protected, payload: payload)
        case (.some, .some): throw .malformed("COSE has a payload where it must be detached")
        case (nil, nil): throw .malformed("COSE has no payload")
        }
    }

    /// The bytes that are signed: `Sig_structure` or `MAC_structure`, without external data.
    private static func toBeSigned(_ context: Context, protected: [UInt8], payload: [UInt8]) -> [UInt8] {
        let structure: CBORValue = [.text(context.rawValue), .bytes(protected), .bytes([]), .bytes(payload)]
        return structure.encoding
    }

    /// The name of the algorithm in the registry of COSE.
    package var algorithmName: String {
        switch algorithm {
        case -7: "ES256"
        case -35: "ES384"
        case -36: "ES512"
        case -9: "ESP256"
        case -51: "ESP384"
        case -52: "ESP512"
        case -265: "ESB256"
        case -266: "ESB320"
        case -267: "ESB384"
        case -268: "ESB512"
        case -8: "EdDSA"
        case 5: "HMAC 256/256"
        default: "\(algorithm)"
        }
    }

    /// The hash of an algorithm with ECDSA on a curve. RFC 9053, 2.1; RFC 9864, 2. Brainpool curves are also used with
    /// the older numbers, where the hash has the length of the curve.
    private static func digest(_ algorithm: Int64, _ curve: Curve) throws(MdocProblem) -> DigestAlgorithm {
        let (digest, curves): (DigestAlgorithm, [Curve]) =
            switch algorithm {
            case -7: (.sha256, [.secp256r1, .secp384r1, .secp521r1, .brainpoolP256r1, .brainpoolP320r1])
            case -35: (.sha384, [.secp256r1, .secp384r1, .secp521r1, .brainpoolP320r1, .brainpoolP384r1])
            case -36: (.sha512, [.secp256r1, .secp384r1, .secp521r1, .brainpoolP512r1])
            case -9: (.sha256, [.secp256r1])
            case -51: (.sha384, [.secp384r1])
            case -52: (.sha512, [.secp521r1])
            case -265: (.sha256, [.brainpoolP256r1])
            case -266: (.sha384, [.brainpoolP320r1])
            case -267: (.sha384, [.brainpoolP384r1])
            case -268: (.sha512, [.brainpoolP512r1])
            default: throw .unsupported("the COSE algorithm \(algorithm)")
            }
        guard curves.contains(curve) else { throw .malformed("the COSE algorithm \(algorithm) does not fit its key") }
        return digest
    }

    /// Signs a detached payload with ES256, ES384 or ES512, by the length of the key. ISO/IEC 18013-5, 9.1.4.
    /// `certificates`: the chain in DER, the signer first, without its root.
    package static func sign(
        detached payload: [UInt8],
        with key: borrowing ECPrivateKey,
        certificates: [[UInt8]]
    ) throws(MdocProblem) -> CBORValue {
        let algorithm: Int64
        switch key.group.curve.fieldLength {
        case ...32: algorithm = -7
        case ...48: algorithm = -35
        default: algorithm = -36
        }
        let protected = ([1: .integer(algorithm)] as CBORValue).encoding
        let digest = try digest(algorithm, key.group.curve)
        let chain = certificates.map { CBORValue.bytes($0) }
        do {
            let bytes = toBeSigned(.signature, protected: protected, payload: payload)
            let signature = try ECDSA.sign(bytes, with: key, digest: digest)
            return [
                .bytes(protected), chain.isEmpty ? [:] : [33: chain.count == 1 ? chain[0] : .array(chain)], .null,
                .bytes(signature),
            ]
        } catch {
            throw .library(error)
        }
    }

    /// Authenticates a detached payload with HMAC 256/256. ISO/IEC 18013-5, 9.1.3.5.
    package static func mac(detached payload: [UInt8], key: borrowing Secret) throws(MdocProblem) -> CBORValue {
        let protected = ([1: 5] as CBORValue).encoding
        let bytes = Secret(toBeSigned(.mac, protected: protected, payload: payload))
        do {
            let mac = try DigestAlgorithm.sha256.hmac(bytes, key: key)
            return [.bytes(protected), [:], .null, .bytes(mac.withBytes { Array($0) })]
        } catch {
            throw .library(error)
        }
    }
}
