// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import MobileDocument
import Server
import Text

extension Failure.Code {
    static let engagementUnsupported = Self("EngagementUnsupported")
}

/// The words of MDOC `error`. docs/protocol/mdoc.md.
extension Failure {
    static let declined = Failure(
        .init("Declined"),
        "The phone gives nothing: its holder has declined, or has no such document",
        advice: "nobody can tell which; ask the holder"
    )
    static let readerRefused = Failure(
        .init("ReaderRefused"),
        "The wallet refuses this reader",
        advice: "its requests need a certificate that the wallet trusts: see [mdoc] in badged.conf(5)"
    )
    /// The wallet ends the session with a status that reports an error.
    static func sessionError(_ words: Phrase) -> Failure {
        Failure(.init("SessionError"), "The session with the phone has failed: \(words)", advice: "begin again")
    }

    static func noEngagement(_ words: Phrase) -> Failure {
        Failure(
            .init("NoEngagement"),
            "No phone has shown a mobile document: \(words)",
            advice: "unlock the phone, open the document, and hold it to the reader, or scan its QR code"
        )
    }

    static func malformed(_ words: Phrase) -> Failure {
        Failure(.init("Malformed"), "What the phone sends breaks its form: \(words)")
    }

    static func unsupported(_ words: Phrase) -> Failure {
        Failure(.engagementUnsupported, "badged cannot talk to this phone: \(words)")
    }

    static let tooLarge = Failure(
        .init("TooLarge"),
        "The answer of the phone is longer than 2 MiB",
        advice: "ask for fewer elements"
    )
    /// The answer was read, and its values are too long for a client.
    static let messageTooLarge = Failure(
        .init("TooLarge"),
        "The values of the document do not fit into one message of 1 MiB",
        advice: "ask for fewer elements, or without raw"
    )

    static func connectionLost(_ words: Phrase) -> Failure {
        Failure(.init("ConnectionLost"), "The connection to the phone is lost: \(words)", advice: "begin again")
    }

    /// The phone did not come back, or did not go on.
    static let phoneStaysAway = connectionLost("it was taken away and not put back")

    /// Why an engagement cannot be used.
    init(engagement problem: MdocProblem) {
        switch problem {
        case .malformed(let words), .session(let words, _): self = .malformed(Phrase(verbatim: words))
        case .unsupported(let words): self = .unsupported(Phrase(verbatim: words))
        case .noEngagement(let words): self = .noEngagement(Phrase(verbatim: words))
        case .library: self.init(.internalError, "The cryptography has failed", cause: problem.text)
        }
    }

    /// Why a message after the engagement cannot be used.
    init(session problem: MdocProblem) {
        switch problem {
        case .session(let words, _): self = .sessionError(Phrase(verbatim: words))
        case .malformed, .unsupported, .noEngagement, .library: self.init(engagement: problem)
        }
    }

    init(_ error: MdocTransportError) {
        switch error {
        case .connectionFailed(let words):
            self.init(.init("ConnectionFailed"), "No connection to the phone: \(words)", advice: "begin again")
        case .connectionLost(let words), .notNow(let words): self = .connectionLost(words)
        case .phoneLeft: self = .cardLost
        case .tooLarge: self = .tooLarge
        case .malformed(let words): self = .malformed(words)
        case .sessionError(let words): self = .sessionError(words)
        case .ended: self = .declined
        case .cancelled: self = .cancelled
        }
    }
}
