// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL

/// Why a cryptographic operation gave no result. Never holds key material.
package enum CryptoError: Error, Sendable, Equatable {
    /// A key, vector, block or signature has a size that the algorithm does not take.
    case invalidLength
    /// Not an uncompressed point of the curve, or the point at infinity.
    case invalidPoint
    /// A private key out of range, or bytes that hold none.
    case invalidKey
    /// Domain parameters or an algorithm that are not ours.
    case unsupported
    /// libcrypto failed: no memory, no randomness.
    case library
}

/// Throws `error` unless a libcrypto call gave 1. What the call left in the thread's error queue is dropped, so that
/// the queue never grows and no later call of another user of the library finds our leavings.
func check(_ result: Int32, _ error: CryptoError = .library) throws(CryptoError) {
    guard result == 1 else {
        ERR_clear_error()
        throw error
    }
}

/// Unwraps what a libcrypto constructor gave.
func check<T>(_ pointer: T?, _ error: CryptoError = .library) throws(CryptoError) -> T {
    guard let pointer else {
        ERR_clear_error()
        throw error
    }
    return pointer
}

/// A name that libcrypto keeps by pointer: it must outlive every call.
func permanent(_ name: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self)
}

extension UnsafeRawBufferPointer {
    /// The bytes as libcrypto takes them.
    var octets: UnsafePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

extension UnsafeMutableRawBufferPointer {
    var octets: UnsafeMutablePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}
