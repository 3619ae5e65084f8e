// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL

/// An operation of libssl or libcrypto has failed; the message has the words of the library.
package struct TLSError: Error, Sendable {
    package let message: String

    init(_ what: String) {
        var reasons: [String] = []
        while case let code = ERR_get_error(), code != 0 {
            if let reason = ERR_reason_error_string(code) { reasons.append(String(cString: reason)) }
        }
        message = reasons.isEmpty ? what : "\(what): \(reasons.joined(separator: "; "))"
    }
}

/// Throws unless a function of OpenSSL returned 1.
func need(_ result: Int32, _ what: String) throws(TLSError) {
    guard result == 1 else { throw TLSError(what) }
}

/// Unwraps the result of a function of OpenSSL; throws for a null pointer.
func need<T>(_ pointer: T?, _ what: String) throws(TLSError) -> T {
    guard let pointer else { throw TLSError(what) }
    return pointer
}
