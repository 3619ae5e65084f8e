// SPDX-License-Identifier: GPL-3.0-or-later
import Aliro
import Cards
import Crypto
import PKOC

/// What a tap has given, whatever the protocol of the card is.
struct CredentialReport: Sendable {
    /// A key that the card has proven.
    struct Proven: Sendable {
        /// On P-256.
        let key: ECPublicKey
        /// The random bytes of this tap.
        let transaction: [UInt8]
        var certificate: PKOCCertificate?
        /// Why the certificate is not valid; nil: it is valid, or there is none.
        var certificateProblem: PKOCProblem?
        /// Only with Aliro.
        var phase: AliroPhase?
    }

    enum Result: Sendable {
        case proven(Proven)
        /// The card has shown no credential, for this reason.
        case failed(String)
    }

    /// `protocol` in CREDENTIAL.
    let technology: String
    let result: Result

    init(_ reading: PKOCReading) {
        switch reading {
        case .failed(let problem, let edition):
            (technology, result) = (edition.rawValue, .failed(problem.rawValue))
        case .credential(let credential):
            technology = credential.edition.rawValue
            result = .proven(
                Proven(
                    key: credential.key,
                    transaction: credential.transaction,
                    certificate: credential.certificate,
                    certificateProblem: credential.certificateProblem
                )
            )
        }
    }

    init(_ reading: AliroReading) {
        technology = "Aliro"
        switch reading {
        case .failed(let problem): result = .failed(problem.rawValue)
        case .credential(let credential):
            result = .proven(
                Proven(key: credential.key, transaction: credential.transaction, phase: credential.phase)
            )
        }
    }
}

/// A card of a kind that shows credentials.
protocol CredentialProfile: CardProfile {
    /// nil: no client wanted the credential.
    var report: CredentialReport? { get }
}
