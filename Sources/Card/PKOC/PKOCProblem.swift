// SPDX-License-Identifier: GPL-3.0-or-later

/// Why a card has presented no credential, or why its certificate is not accepted. The raw values are the words of
/// `reason` and of `certificate.state` in CREDENTIAL.
package enum PKOCProblem: String, Error, Sendable, CaseIterable {
    /// The signature does not match the key and the transaction: a forged or repeated answer, or a disturbed one.
    case wrongSignature
    /// The card has refused a command.
    case refused
    /// An answer or the certificate is malformed.
    case malformed
    /// The certificate has a key of another type than P-256.
    case unsupported
    /// Validated mode: the card has no certificate.
    case noCertificate
    /// The site does not know the issuer of the certificate.
    case unknownIssuer
    /// The issuer has not signed this certificate.
    case wrongCertificateSignature
    case notYetValid
    case expired
    /// libcrypto failed, for example for lack of memory.
    case internalError
}
