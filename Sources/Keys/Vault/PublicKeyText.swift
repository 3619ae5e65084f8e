// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// The forms in which a public key of P-256 is handed over. A key has 65 bytes.
package enum PublicKeyText {
    /// Everything before the point in a SubjectPublicKeyInfo of P-256. RFC 5480, 2.
    private static let prefix = Hex.decode("3059301306072a8648ce3d020106082a8648ce3d030107034200") ?? []

    /// The SubjectPublicKeyInfo in DER.
    package static func der(_ key: [UInt8]) -> [UInt8] { prefix + key }

    package static func pem(_ key: [UInt8]) -> String { PEM.publicKey.encode(der(key)) }

    /// The SHA-256 of the SubjectPublicKeyInfo.
    package static func fingerprint(_ key: [UInt8]) -> [UInt8] {
        (try? DigestAlgorithm.sha256.hash(der(key))) ?? []
    }

    /// The fingerprint in base64url: 43 characters.
    package static func thumbprint(_ key: [UInt8]) -> String { Base64.url.encode(fingerprint(key)) }

    /// Reads an uncompressed point as hexadecimal digits, with or without the leading 04; nil unless it is on the curve.
    package static func read(_ text: String) -> [UInt8]? {
        guard var bytes = Hex.decode(text, limit: 65) else { return nil }
        if bytes.count == 64 { bytes.insert(4, at: 0) }
        return isPoint(bytes) ? bytes : nil
    }

    static func isPoint(_ bytes: [UInt8]) -> Bool {
        bytes.count == 65 && (try? ECPublicKey(bytes, on: .secp256r1)) != nil
    }
}
