// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import Crypto
import ISO7816

/// A SubjectPublicKeyInfo, as certificates, DG14 and DG15 have it. RFC 5280 4.1.2.7, RFC 3279, RFC 5480.
///
/// Explicit parameters of a curve are compared with all standardized curves, number by number, and never reach
/// libcrypto. Otherwise a forger chooses a generator that fits a public key (CVE-2020-0601), or a number with which the
/// check of the parameters does not end (CVE-2022-0778).
package enum PublicKeyInfo: Sendable, Equatable {
    case elliptic(ECPublicKey)
    case rsa(RSAPublicKey)
    /// A key for signatures with PSS alone, and with at least these parameters if there are any. RFC 4055 1.2, 3.1.
    case rsaPSS(RSAPublicKey, RSAPublicKey.PSSParameters?)
    case integers(DHPublicKey)

    /// Why a structure of a chip cannot be used.
    package enum Fault: Error, Sendable, Equatable {
        case malformed
        /// An unknown algorithm, hash or curve, or a number out of the limits.
        case unsupported
        /// The point is not on the curve.
        case invalidKey
    }

    /// Reads one encoded object.
    package init(_ bytes: [UInt8]) throws(Fault) {
        guard let info = try? BERTLV(bytes), info.tag == 0x30, let parts = try? info.children, parts.count == 2,
            parts[0].tag == 0x30, let algorithm = try? parts[0].children, let identifier = algorithm.first,
            identifier.tag == 0x06, algorithm.count <= 2, parts[1].tag == 0x03, parts[1].value.first == 0
        else { throw .malformed }
        let key = Array(parts[1].value.dropFirst())
        let parameters = algorithm.dropFirst().first
        switch identifier.value {
        case Self.ecPublicKey, OID.publicKey + [2], OID.standardizedDomainParameters, Self.ecDH:
            // Without parameters, they are those of the issuer. RFC 3279 2.3.5.
            guard let parameters, parameters.tag != 0x05 else { throw .unsupported }
            let curve = try Self.curve(parameters)
            // Hybrid points: nobody uses them.
            guard key.first != 0x06, key.first != 0x07 else { throw .unsupported }
            let isCompressed = key.first == 0x02 || key.first == 0x03
            do throws(CryptoError) {
                self = .elliptic(
                    isCompressed ? try ECPublicKey(compressedPoint: key, on: curve) : try ECPublicKey(key, on: curve)
                )
            } catch {
                throw error == .invalidPoint ? .invalidKey : .unsupported
            }
        case Self.rsaEncryption:
            self = .rsa(try Self.rsa(key))
        case Self.rsassaPSS:
            let isRestricted = parameters.map { $0.tag != 0x05 } ?? false
            let least = isRestricted ? SignatureAlgorithm.pssParameters(parameters) : nil
            guard !isRestricted || least != nil else { throw .unsupported }
            self = .rsaPSS(try Self.rsa(key), least)
        case Self.dhKeyAgreement, Self.dhPublicNumber:
            self = .integers(try Self.integers(key, parameters))
        default:
            throw .unsupported
        }
    }

    /// Reads the ECParameters of RFC 3279 2.3.5, or the number of standardized parameters.
    private static func curve(_ parameters: BERTLV) throws(Fault) -> Curve {
        switch parameters.tag {
        case 0x06:
            guard let curve = curves[parameters.value] else { throw .unsupported }
            return curve
        case 0x02:
            guard parameters.value.count == 1, let curve = Curve(rawValue: parameters.value[0]) else {
                throw .unsupported
            }
            return curve
        case 0x30:
            return try explicitCurve(parameters)
        default:
            throw .malformed
        }
    }

    private static func explicitCurve(_ parameters: BERTLV) throws(Fault) -> Curve {
        guard parameters.value.count <= 1024, let fields = try? parameters.children, (5...6).contains(fields.count),
            fields.prefix(5).map(\.tag) == [0x02, 0x30, 0x30, 0x04, 0x02],
            let field = try? fields[1].children, field.count == 2, field[0].tag == 0x06,
            let equation = try? fields[2].children, (2...3).contains(equation.count), equation[0].tag == 0x04,
            equation[1].tag == 0x04
        else { throw .malformed }
        guard field[0].value == primeField, field[1].tag == 0x02 else { throw .unsupported }
        // A missing cofactor is 1, which all known curves have.
        let cofactor: [UInt8] = fields.count == 6 ? fields[5].value : [1]
        let explicit = ExplicitDomainParameters(
            prime: field[1].value,
            a: equation[0].value,
            b: equation[1].value,
            generator: fields[3].value,
            order: fields[4].value,
            cofactor: cofactor
        )
        guard let curve = try? Curve(explicit) else { throw .unsupported }
        return curve
    }

    private static func rsa(_ key: [UInt8]) throws(Fault) -> RSAPublicKey {
        guard let sequence = try? BERTLV(key), sequence.tag == 0x30, let numbers = try? sequence.children,
            numbers.count == 2, numbers.allSatisfy({ $0.tag == 0x02 && !$0.value.isEmpty && $0.value[0] & 0x80 == 0 })
        else { throw .malformed }
        guard let key = try? RSAPublicKey(modulus: numbers[0].value, exponent: numbers[1].value, bits: 1024...8192)
        else { throw .unsupported }
        return key
    }

    /// Diffie-Hellman over integers, with the prime and generator of a known group. RFC 3279 2.3.3, PKCS#3.
    private static func integers(_ key: [UInt8], _ parameters: BERTLV?) throws(Fault) -> DHPublicKey {
        guard let parameters, parameters.tag == 0x30, let numbers = try? parameters.children, numbers.count >= 2,
            numbers[0].tag == 0x02, numbers[1].tag == 0x02, let number = try? BERTLV(key), number.tag == 0x02
        else { throw .malformed }
        guard let group = DHParameters(prime: numbers[0].value, generator: numbers[1].value) else { throw .unsupported }
        guard let key = try? DHPublicKey(number.value, in: group) else { throw .invalidKey }
        return key
    }

    private static let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
    /// id-ecDH. RFC 5480 2.1.2.
    private static let ecDH: [UInt8] = [0x2B, 0x81, 0x04, 0x01, 0x0C]
    private static let primeField: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x01, 0x01]
    private static let rsaEncryption: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]
    private static let rsassaPSS: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x0A]
    private static let dhKeyAgreement: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x03, 0x01]
    private static let dhPublicNumber: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3E, 0x02, 0x01]

    /// The object identifiers of the named curves. SEC 2 A.2, RFC 5639 4.
    private static let curves: [[UInt8]: Curve] = {
        let prime: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01]
        let certicom: [UInt8] = [0x2B, 0x81, 0x04, 0x00]
        let brainpool: [UInt8] = [0x2B, 0x24, 0x03, 0x03, 0x02, 0x08, 0x01, 0x01]
        return [
            prime + [1]: .secp192r1, prime + [7]: .secp256r1,
            certicom + [0x21]: .secp224r1, certicom + [0x22]: .secp384r1, certicom + [0x23]: .secp521r1,
            brainpool + [3]: .brainpoolP192r1, brainpool + [5]: .brainpoolP224r1, brainpool + [7]: .brainpoolP256r1,
            brainpool + [9]: .brainpoolP320r1, brainpool + [11]: .brainpoolP384r1, brainpool + [13]: .brainpoolP512r1,
        ]
    }()
}
