// SPDX-License-Identifier: GPL-3.0-or-later

/// A key of an open credential that can sign. The private part stays where it is kept.
package protocol CredentialKey: Sendable {
    /// A point of P-256: 65 bytes, uncompressed.
    var publicKey: [UInt8] { get }

    /// Signs a SHA-256 digest with ECDSA. Returns r and s, 64 bytes.
    /// - Throws: `SigningError` if there is advice for the user.
    func sign(digest: [UInt8]) async throws -> [UInt8]
}

/// Why a key has not signed.
package protocol SigningError: Error {
    /// What happened and what to do next.
    var text: String { get }
}
