// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL

/// What libssl or libcrypto could not do, with the library's own words.
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

/// Throws unless a function of OpenSSL gave 1.
func need(_ result: Int32, _ what: String) throws(TLSError) {
    guard result == 1 else { throw TLSError(what) }
}

/// Unwraps what a constructor of OpenSSL gave.
func need<T>(_ pointer: T?, _ what: String) throws(TLSError) -> T {
    guard let pointer else { throw TLSError(what) }
    return pointer
}
