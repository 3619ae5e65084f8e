// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// Why a structure of a mobile document cannot be used. The words name the place and hold no value.
package enum MdocProblem: Error, Sendable, Equatable {
    /// The bytes break their form.
    case malformed(String)
    /// The form is right, and badged lacks the version, curve, algorithm or way to connect.
    case unsupported(String)
    /// A message of a handover has no engagement: something else lies on the reader, or the phone refuses.
    case noEngagement(String)
    /// A message of the session cannot be decrypted or read. `answer` is the status that the other side is told:
    /// `MdocSession.status`. The session is over.
    case session(String, answer: Int64)
    /// libcrypto failed.
    case library(CryptoError)

    package init(_ fault: Malformed) { self = .malformed(fault.text) }

    /// Words for a person or the log.
    package var text: String {
        switch self {
        case .malformed(let text), .unsupported(let text), .noEngagement(let text), .session(let text, _): text
        case .library: "the cryptography failed"
        }
    }
}

/// Runs cryptography with values that have been checked.
func library<Value: ~Copyable>(_ value: @autoclosure () throws(CryptoError) -> Value) throws(MdocProblem) -> Value {
    try translating(MdocProblem.library, value())
}

/// Reads CBOR.
func reading<Value>(_ value: @autoclosure () throws(Malformed) -> Value) throws(MdocProblem) -> Value {
    try translating({ (fault: Malformed) in MdocProblem(fault) }, value())
}
