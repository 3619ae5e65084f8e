// SPDX-License-Identifier: GPL-3.0-or-later

/// What went wrong, finer than the minor result and coarser than the reason: it decides about the minor result, and has
/// words for a person.
package enum FailureStatus: Sendable, Hashable, CaseIterable {
    // al/common#unknownError
    case unknown
    case workflowInProgress
    case wrongLength
    case cardNotFound
    case cardCommunication
    case inputTimeout
    case pinNotBlocked
    case newPINMismatch
    case newPINInvalidLength
    case unexpectedTransmitStatus

    // al/common#noPermission
    case terminalRefused
    case pinDeactivated
    case pukInoperative

    // al/common#internalError
    case cardNotAuthentic
    case cardProtocol
    case noChainToCard
    case unknownMessage
    case unexpectedMessage
    case noStartPAOSResponse

    // al/common#parameterError
    case noCertificateDescription
    case noSubjectURL
    case descriptionHashMismatch
    case sameOriginViolation

    // al/common#communicationError
    case refreshAddress
    case browserUnreachable
    case network
    case wrongInvocation
    case wrongPIN
    case wrongCAN
    case wrongPUK

    // dp#trustedChannelEstablishmentFailed
    case noTcToken
    case invalidTcToken
    case connection
    case tls
    case certificateNotListed
    case sessionNotResumed
    case serverError
    case timeout

    // il/signature#invalidCertificatePath
    case noUniqueTerminalCertificate
    case noUniqueDocumentVerifier
    case certificateChain
    case certificateSignature
    case certificateExpired
    case productiveInDeveloperMode

    // sal#cancellationByUser
    case cancelledByUser
    case cancelledOnReader
    case cardRemoved

    // sal/mEAC#DocumentValidityVerificationFailed
    case documentInvalid

    package var minor: ResultMinor {
        switch self {
        case .unknown, .workflowInProgress, .wrongLength, .cardNotFound, .cardCommunication, .inputTimeout,
            .pinNotBlocked, .newPINMismatch, .newPINInvalidLength, .unexpectedTransmitStatus:
            .unknownError
        case .terminalRefused, .pinDeactivated, .pukInoperative:
            .noPermission
        case .cardNotAuthentic, .cardProtocol, .noChainToCard, .unknownMessage, .unexpectedMessage,
            .noStartPAOSResponse:
            .internalError
        case .noCertificateDescription, .noSubjectURL, .descriptionHashMismatch, .sameOriginViolation:
            .parameterError
        case .refreshAddress, .browserUnreachable, .network, .wrongInvocation, .wrongPIN, .wrongCAN, .wrongPUK:
            .communicationError
        case .noTcToken, .invalidTcToken, .connection, .tls, .certificateNotListed, .sessionNotResumed, .serverError,
            .timeout:
            .trustedChannelEstablishmentFailed
        case .noUniqueTerminalCertificate, .noUniqueDocumentVerifier, .certificateChain, .certificateSignature,
            .certificateExpired, .productiveInDeveloperMode:
            .invalidCertificatePath
        case .cancelledByUser, .cancelledOnReader, .cardRemoved:
            .cancellationByUser
        case .documentInvalid:
            .documentValidityVerificationFailed
        }
    }

    /// One sentence in English: what happened.
    package var message: String {
        switch self {
        case .unknown: "An unknown error occurred."
        case .workflowInProgress: "Another dialogue is running."
        case .wrongLength: "The reader cannot carry commands of extended length."
        case .cardNotFound: "There is no card."
        case .cardCommunication: "The card does not answer."
        case .inputTimeout: "Nothing was entered in time."
        case .pinNotBlocked: "The PUK is not needed: the PIN is not blocked."
        case .newPINMismatch: "The new PIN was repeated differently."
        case .newPINInvalidLength: "The new PIN has a wrong length."
        case .unexpectedTransmitStatus: "The card answered a command of the service with an unexpected status."
        case .terminalRefused: "The card refused the service."
        case .pinDeactivated: "The online function of the card is switched off."
        case .pukInoperative: "The PUK is used up."
        case .cardNotAuthentic: "The card could not be shown to be genuine."
        case .cardProtocol: "The card broke the rules of its protocol."
        case .noChainToCard: "The service has no certificates that this card trusts."
        case .unknownMessage: "The server sent something that is no message of the protocol."
        case .unexpectedMessage: "The server sent a message at the wrong time."
        case .noStartPAOSResponse: "The server did not end the dialogue."
        case .noCertificateDescription: "The service does not describe itself."
        case .noSubjectURL: "The description of the service has no address."
        case .descriptionHashMismatch: "The description of the service does not belong to its certificate."
        case .sameOriginViolation: "The description of the service belongs to another address."
        case .refreshAddress: "The way back to the service could not be found."
        case .browserUnreachable: "The browser could not be reached."
        case .network: "The network failed."
        case .wrongInvocation: "There is no valid address of a TcToken."
        case .wrongPIN: "The PIN is wrong."
        case .wrongCAN: "The CAN is wrong."
        case .wrongPUK: "The PUK is wrong."
        case .noTcToken: "The service did not give a TcToken."
        case .invalidTcToken: "The TcToken of the service is not valid."
        case .connection: "The server could not be reached."
        case .tls: "The server's encryption does not meet the rules."
        case .certificateNotListed: "The server's certificate is not one of those in the description of the service."
        case .sessionNotResumed: "The server did not go on with the encrypted session of the service."
        case .serverError: "The server reported an error."
        case .timeout: "The server did not answer in time."
        case .noUniqueTerminalCertificate: "The service has no certificate for the card, or more than one."
        case .noUniqueDocumentVerifier: "The service has no certificate of its issuer, or more than one."
        case .certificateChain: "The certificates of the service do not lead to a known authority."
        case .certificateSignature: "A certificate of the service has a wrong signature."
        case .certificateExpired: "A certificate of the service is not valid at this date."
        case .productiveInDeveloperMode: "Developer mode is for test services only."
        case .cancelledByUser: "It was cancelled."
        case .cancelledOnReader: "It was cancelled on the reader."
        case .cardRemoved: "The card was removed."
        case .documentInvalid: "The card is not valid any more."
        }
    }
}
