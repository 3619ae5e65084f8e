// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// Why a cryptographic operation failed. It holds no key material.
package enum CryptoError: Error, Sendable, Equatable {
    /// A key, vector, block or signature has a length that the algorithm does not accept.
    case invalidLength
    /// The bytes are no uncompressed point of the curve, or the point is the point at infinity.
    case invalidPoint
    /// The private key is out of range, or the bytes hold none.
    case invalidKey
    /// The domain parameters or the algorithm are not supported.
    case unsupported
    /// libcrypto failed, for example for lack of memory.
    case library
}

/// Throws `error` unless a call of libcrypto returned 1.
///
/// The error queue of the thread is emptied, so that no later call finds errors of this one.
package func check(_ result: Int32, _ error: CryptoError = .library) throws(CryptoError) {
    guard result == 1 else {
        ERR_clear_error()
        throw error
    }
}

/// Throws `error` when a constructor of libcrypto returned NULL.
package func check<T>(_ pointer: T?, _ error: CryptoError = .library) throws(CryptoError) -> T {
    guard let pointer else {
        ERR_clear_error()
        throw error
    }
    return pointer
}

/// The C string of a name. libcrypto keeps the pointer, so the string must stay.
func permanent(_ name: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
}

extension UnsafeRawBufferPointer {
    /// The bytes as libcrypto takes them.
    package var octets: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

extension UnsafeMutableRawBufferPointer {
    package var octets: UnsafeMutablePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

extension Failure {
    /// Cryptography of badged itself has failed, which no client can cause.
    package static func crypto(_ error: CryptoError) -> Failure {
        Failure(.internalError, "the cryptography failed", cause: "\(error)")
    }
}

/// Runs cryptography whose failure no client can cause.
package func cryptography<Value: ~Copyable>(
    _ value: @autoclosure () throws(CryptoError) -> Value
) throws(Failure) -> Value {
    try translating(Failure.crypto, value())
}
