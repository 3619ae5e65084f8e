// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import ISO7816

/// The identifier that a reader sends to cards, and the issuers whose certificates the reader accepts.
package struct PKOCSite: Sendable, Equatable {
    /// The names of the site and of the reader's place, 16 bytes each. A card may use them to choose a key.
    package let readerIdentifier: [UInt8]
    /// The issuers whose certificates are accepted.
    package let issuers: [PKOCIssuer]
    /// Validated mode: only a key with a valid certificate is a credential, and SE V1 is never used.
    package let isValidated: Bool

    /// `site` and `location` have 16 bytes each; other lengths are cut or filled with zeros.
    package init(
        site: [UInt8] = [],
        location: [UInt8] = [],
        issuers: [PKOCIssuer] = [],
        isValidated: Bool = false
    ) {
        func sixteen(_ bytes: [UInt8]) -> [UInt8] {
            Array(bytes.prefix(16)) + [UInt8](repeating: 0, count: max(0, 16 - bytes.count))
        }
        readerIdentifier = sixteen(site) + sixteen(location)
        self.issuers = issuers
        self.isValidated = isValidated
    }
}

/// An issuer of card certificates: its name in certificates, and the key that signs them.
package struct PKOCIssuer: Sendable, Equatable {
    /// The key of an issuer.
    package enum Key: Sendable, Equatable {
        /// P-256; signs with ECDSA and SHA-256.
        case elliptic(ECPublicKey)
        /// Signs with PKCS#1 v1.5 and SHA-256.
        case rsa(RSAPublicKey)

        /// rsaEncryption: 1.2.840.113549.1.1.1.
        private static let rsaIdentifier: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01]

        /// Reads a compressed point of P-256 (33 bytes), or an RSA key: the object 7F49 with 06, 81 (modulus) and 82
        /// (exponent). PKOC NFC 2.0.1.
        ///
        /// The result is nil for anything else.
        package init?(_ bytes: [UInt8]) {
            if let key = try? ECPublicKey(compressedPoint: bytes, on: .secp256r1) {
                self = .elliptic(key)
                return
            }
            guard let object = try? BERTLV(bytes), object.tag == PKOCTag.certificateKey,
                let parts = try? object.children, parts.map(\.tag) == [0x06, 0x81, 0x82],
                parts[0].value == Self.rsaIdentifier,
                let key = try? RSAPublicKey(modulus: parts[1].value, exponent: parts[2].value)
            else { return nil }
            self = .rsa(key)
        }

        func verify(_ signature: [UInt8], of message: [UInt8]) throws(CryptoError) -> Bool {
            switch self {
            case .elliptic(let key): try ECDSA.verify(signature, of: message, with: key, digest: .sha256)
            case .rsa(let key): try key.verify(signature, of: message, digest: .sha256)
            }
        }
    }

    /// 16 bytes, each A to Z or 0 to 9.
    package let reference: [UInt8]
    package let key: Key

    /// Nil unless `reference` is a name of 16 letters and digits.
    package init?(reference: [UInt8], key: Key) {
        guard PKOCCertificate.isReference(reference) else { return nil }
        self.reference = reference
        self.key = key
    }
}
