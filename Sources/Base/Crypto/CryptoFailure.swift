// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

extension Failure {
    /// Cryptography of badged itself has failed, which no client can cause.
    package static func crypto(_ error: CryptoError) -> Failure {
        Failure(.internalError, "the cryptography failed", cause: "\(error)")
    }
}

/// Runs cryptography whose failure no client can cause.
package func cryptography<Value: ~Copyable>(
    _ body: () throws(CryptoError) -> Value
) throws(Failure) -> Value {
    try translating(Failure.crypto, body)
}
