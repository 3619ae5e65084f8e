// SPDX-License-Identifier: GPL-3.0-or-later
package import DoorReaders
package import Text

/// How an opening has ended. The raw value is the name in messages.
package enum OpeningStatus: String, Sendable, CaseIterable {
    /// The dialogue was complete. `AccessDecision` says whether the door opens, if the reader has reported it.
    case success
    case bluetoothCommunicationFailed
    /// There was no connection in time.
    case timedOut
    case outOfRange
    /// The adapter opens another reader, the reader was opened a moment ago, or another program uses it.
    case busy
    case motionNotSupported
    case tapNotSupported
    case keyNotFound
    case readerAntiPassback
    /// The reader has sent a wrong message, has not proved its site, or has refused the dialogue.
    case readerFailure
    case communicationFailedWithDeadLock
    case deviceTimedOutEarly
    /// The key has not signed in time.
    case deviceTimedOutAPDU
    case deviceTimedOutFragment
    /// The reader has not accepted a write in time.
    case readerTimedOutBLE
    /// The reader has sent no complete message in time.
    case readerTimedOutAPDU
    /// The reader has not sent the next piece of a message in time.
    case readerTimedOutFragment
    case openingTypeNotSupported
}

/// What the reader says about the door. The decision is not authenticated.
package enum AccessDecision: String, Sendable {
    case granted, denied, unknown
}

package struct OpeningResult: Sendable, Equatable {
    package let status: OpeningStatus
    package let decision: AccessDecision
    /// The code of the reader: one byte, or empty.
    package let payload: [UInt8]
    /// The reason of a failure for people.
    package let reason: Phrase?
    /// The identifier of the key that was chosen; nil before the reader has named its site.
    package var key: String?

    package init(
        _ status: OpeningStatus,
        decision: AccessDecision = .unknown,
        payload: [UInt8] = [],
        reason: Phrase? = nil,
        key: String? = nil
    ) {
        self.status = status
        self.decision = decision
        self.payload = payload
        self.reason = reason
        self.key = key
    }

    init(_ answer: PKOCHandshake.Answer) {
        switch answer {
        case .error(let code):
            let reason: Phrase = "the reader has ended the dialogue with error \(code)"
            self.init(.readerFailure, payload: [code], reason: reason)
        case .refused(let code): self = .failed(code)
        case .response(let code):
            switch PKOCResponse(rawValue: code) {
            case .granted: self.init(.success, decision: .granted, payload: [code])
            case .denied: self.init(.success, decision: .denied, payload: [code])
            case .notRecognised:
                let reason: Phrase = "the reader does not know the key"
                self.init(.success, decision: .denied, payload: [code], reason: reason)
            case .completed, .unknown: self.init(.success, payload: [code])
            case nil: self = .failed(code)
            }
        }
    }

    private static func failed(_ code: UInt8) -> OpeningResult {
        OpeningResult(.readerFailure, payload: [code], reason: "the reader has answered with code \(code)")
    }

    init(_ failure: PKOCFailure) {
        let status: OpeningStatus =
            switch failure {
            case .unknownSite, .key: .keyNotFound
            case .link(let status, _): status
            default: .readerFailure
            }
        self.init(status, reason: failure.text)
    }
}

/// How long an opening waits, in milliseconds.
package struct OpeningTimeouts: Sendable, Equatable {
    /// Between two pieces of a message.
    package var fragment: Milliseconds = 300
    /// For the next message with all its pieces, a write, or a signature.
    package var apdu: Milliseconds = 1200
    /// For finding the reader, for connecting to it, and for its services and notifications, each.
    package var connect: Milliseconds = 3200

    package init() {}
}

package enum OpeningState: String, Sendable {
    case connecting
    /// The first message of the reader is awaited.
    case connected
    /// The reader has proved its site, or is legacy, and the key signs.
    case authenticating
}

/// Why a dialogue with a PKOC reader ended without an answer of the reader.
package enum PKOCFailure: Error, Sendable, Equatable {
    /// A message, certificate or list has another form than PKOC defines.
    case malformed
    /// A well-formed message that does not fit the state of the dialogue.
    case unexpectedMessage
    /// No credential is for this site or this reader.
    case unknownSite
    /// The reader did not prove that it belongs to the site.
    case wrongSignature
    /// The site is known by its issuer only, and the reader has presented no certificate.
    case noCertificate
    case certificateInvalid
    case certificateExpired
    /// The site has revoked the reader, whatever the reader presents.
    case readerRevoked
    /// The credential key did not sign, with the reason.
    case key(Phrase?)
    /// The link failed or a time limit has passed, with the status and the reason.
    case link(OpeningStatus, Phrase)
    /// libcrypto failed.
    case cryptography

    /// The reason for people.
    package var text: Phrase {
        switch self {
        case .malformed: "the reader has sent a malformed message"
        case .unexpectedMessage: "the reader has sent a message that does not fit the dialogue"
        case .unknownSite: "no key is for the site of this reader"
        case .wrongSignature: "the reader has not proved that it belongs to its site"
        case .noCertificate: "the reader has presented no certificate"
        case .certificateInvalid: "the certificate of the reader is not of its site"
        case .certificateExpired: "the certificate of the reader is not valid now"
        case .readerRevoked: "the reader is revoked"
        case .key(let reason): reason ?? "the key could not sign"
        case .link(_, let reason): reason
        case .cryptography: "a cryptographic operation failed"
        }
    }
}
