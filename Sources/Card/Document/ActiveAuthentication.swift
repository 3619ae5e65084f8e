// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
package import Crypto
import ISO7816

/// Active authentication: the chip signs a challenge with a key whose public half is in DG15. ICAO 9303-11 6.1.
package enum ActiveAuthentication {
    /// The length of a challenge in bytes.
    package static let challengeLength = 8

    package enum Answer: Sendable, Equatable {
        case right
        case wrong
        /// The trailer or the algorithm is not known.
        case unsupported
    }

    /// Checks the answer of a chip.
    ///
    /// - Parameters:
    ///   - answer: the signature: a number (RSA), or r and s (ECDSA), of which some chips make a DER sequence.
    ///   - challenge: 8 bytes.
    ///   - key: of DG15.
    ///   - infos: of DG14, which may name the hash of ECDSA; nil without DG14.
    /// - Returns: whether the chip has the private key.
    /// - Throws: only when libcrypto fails.
    package static func check(
        _ answer: [UInt8],
        challenge: [UInt8],
        key: PublicKeyInfo,
        infos: SecurityInfos?
    ) throws(CryptoError) -> Answer {
        switch key {
        case .rsa(let key), .rsaPSS(let key, _): return try check(answer, challenge, key)
        case .elliptic(let key): return try check(answer, challenge, key, infos)
        case .integers: return .unsupported
        }
    }

    // MARK: RSA

    /// ISO/IEC 9796-2, scheme 1 with partial recovery: 6A, the part M1, the hash of M1 and challenge, a trailer.
    private static func check(
        _ answer: [UInt8],
        _ challenge: [UInt8],
        _ key: RSAPublicKey
    ) throws(CryptoError) -> Answer {
        guard answer.drop(while: { $0 == 0 }).count <= key.modulus.count, let recovered = try key.recover(answer)
        else { return .wrong }
        // Some chips sign with the smaller of both roots.
        var result = Answer.wrong
        for message in [recovered, try key.complement(recovered)] {
            switch try check(message: message, challenge) {
            case .right: return .right
            case .unsupported: result = .unsupported
            case .wrong: continue
            }
        }
        return result
    }

    /// Checks a message representative: what a signature becomes with the public key.
    package static func check(message: [UInt8], _ challenge: [UInt8]) throws(CryptoError) -> Answer {
        guard let last = message.last, message.first == 0x6A else { return .wrong }
        let (digest, trailer): (DigestAlgorithm, Int)
        switch (last, message.dropLast().last) {
        case (0xBC, _): (digest, trailer) = (.sha1, 1)
        case (0xCC, 0x33): (digest, trailer) = (.sha1, 2)
        case (0xCC, 0x34): (digest, trailer) = (.sha256, 2)
        case (0xCC, 0x35): (digest, trailer) = (.sha512, 2)
        case (0xCC, 0x36): (digest, trailer) = (.sha384, 2)
        case (0xCC, 0x38): (digest, trailer) = (.sha224, 2)
        case (0xCC, _): return .unsupported
        default: return .wrong
        }
        let body = message.dropFirst().dropLast(trailer)
        guard body.count > digest.count else { return .wrong }
        let hash = try digest.hash(Array(body.dropLast(digest.count)) + challenge)
        return hash == Array(body.suffix(digest.count)) ? .right : .wrong
    }

    // MARK: ECDSA

    /// Tries the hash that DG14 names, then the others: the key proves the chip, and a label that differs does not
    /// refute it. Without a label each hash must be tried. ICAO 9303-11 6.1.2.3.
    private static func check(
        _ answer: [UInt8],
        _ challenge: [UInt8],
        _ key: ECPublicKey,
        _ infos: SecurityInfos?
    ) throws(CryptoError) -> Answer {
        let labels = infos?.activeAuthentication ?? []
        let named = labels.compactMap { SignatureAlgorithm.plain.digest(of: $0.algorithm) }
        for digest in named + DigestAlgorithm.allCases.filter({ !named.contains($0) }) {
            if try ECDSA.verify(answer, of: challenge, with: key, digest: digest) { return .right }
            if answer.first == 0x30, try ECDSA.verify(der: answer, of: challenge, with: key, digest: digest) {
                return .right
            }
        }
        let isUnknown = labels.contains { $0.version != 1 || SignatureAlgorithm.plain.digest(of: $0.algorithm) == nil }
        return isUnknown ? .unsupported : .wrong
    }
}
