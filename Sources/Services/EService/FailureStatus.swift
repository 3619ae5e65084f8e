// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
package import Text

/// What went wrong: finer than the minor result, coarser than the failure reason.
package struct FailureStatus: Sendable, Equatable {
    package let minor: ResultMinor
    /// Says in one sentence what happened.
    package let message: Phrase
    /// What is wrong with badged-network; nil when it did its work.
    package let network: NetworkFault?

    package enum NetworkFault: String, Sendable {
        /// It does not run.
        case unavailable
        /// It failed during a request.
        case lost
    }

    private init(_ minor: ResultMinor, _ message: Phrase, _ network: NetworkFault? = nil) {
        self.minor = minor
        self.message = message
        self.network = network
    }

    /// There is no trusted connection to the service.
    private static func channel(_ message: Phrase, _ network: NetworkFault? = nil) -> Self {
        Self(.trustedChannelEstablishmentFailed, message, network)
    }

    /// The certificates of the service are not accepted.
    private static func certificates(_ message: Phrase) -> Self { Self(.invalidCertificatePath, message) }

    package static let unknown = Self(.unknownError, "An unknown error occurred.")
    package static let wrongLength = Self(.unknownError, "The reader cannot carry commands of extended length.")
    package static let cardCommunication = Self(.unknownError, "The card does not answer.")
    package static let unexpectedTransmitStatus = Self(
        .unknownError,
        "The card answered a command of the service with an unexpected status."
    )

    package static let terminalRefused = Self(.noPermission, "The card refused the service.")
    package static let pukInoperative = Self(.noPermission, "The PUK is used up.")

    package static let cardProtocol = Self(.internalError, "The card violated the protocol.")
    package static let noChainToCard = Self(.internalError, "The service has no certificates that this card trusts.")
    package static let unknownMessage = Self(.internalError, "The server sent an unknown or malformed message.")
    package static let unexpectedMessage = Self(.internalError, "The server sent a message at the wrong time.")

    package static let noCertificateDescription = Self(.parameterError, "The service sent no certificate description.")
    package static let noSubjectURL = Self(
        .parameterError,
        "The certificate description of the service has no address."
    )
    package static let descriptionHashMismatch = Self(
        .parameterError,
        "The certificate description does not belong to the certificate of the service."
    )
    package static let sameOriginViolation = Self(
        .parameterError,
        "The certificate description of the service belongs to another address."
    )

    package static let refreshAddress = Self(
        .communicationError,
        "The return address of the service could not be determined."
    )
    package static let browserUnreachable = Self(.communicationError, "The browser could not be reached.")
    package static let wrongInvocation = Self(
        .communicationError,
        "The address of the TcToken is missing, not valid, or longer than 16 KiB."
    )

    package static let noTcToken = channel("The service did not give a TcToken.")
    package static let invalidTcToken = channel("The TcToken of the service is not valid.")
    package static let insecureAddress = channel("The address of the TcToken does not begin with https.")
    package static let insecureRedirect = channel(
        "The service redirects to an address that is not a valid https address."
    )
    package static let endlessRedirect = channel("The service redirects without end.")
    static func noNetworkProcess(_ words: Phrase) -> Self {
        channel(Phrase("No service can be reached: \(words)."), .unavailable)
    }
    static func lostNetworkProcess(_ words: Phrase) -> Self {
        channel(Phrase("The connection to the service was lost: \(words)."), .lost)
    }
    package static let connection = channel("The server could not be reached.")
    package static let noAnswer = channel("The server gave no valid answer.")
    package static let proxyUnreachable = channel("The proxy could not be reached.")
    package static let proxyRefused = channel("The proxy refused the connection.")
    package static let proxyCredentials = channel("The proxy did not accept the name and the password.")
    package static let proxyLogin = channel("The proxy asks for a name and a password.")
    package static let proxyMethod = channel("The proxy asks for a login by a method that badged does not have.")
    package static let proxyPage = channel("The proxy answers with a page, such as one to log in at this network.")
    package static let proxyWithoutTunnels = channel("The proxy opens no connection to this server or port.")
    package static let proxyGateway = channel("The proxy could not reach the server.")
    package static let tls = channel("The server's encryption does not meet the requirements.")
    package static let certificateNotListed = channel(
        "The server's certificate is not listed in the certificate description of the service."
    )
    package static let sessionNotResumed = channel("The server did not resume the TLS session.")
    package static let serverError = channel("The server reported an error.")
    package static let timeout = channel("The server did not answer in time.")

    package static let noUniqueTerminalCertificate = certificates(
        "The service has no certificate for the card, or more than one."
    )
    package static let noUniqueDocumentVerifier = certificates(
        "The service has no certificate of its issuer, or more than one."
    )
    package static let certificateChain = certificates(
        "The certificates of the service do not lead to a known authority."
    )
    package static let certificateSignature = certificates("A certificate of the service has a wrong signature.")
    package static let certificateExpired = certificates("A certificate of the service is not valid on this date.")
    package static let productiveInDeveloperMode = certificates("Developer mode is for test services only.")

    package static let promptTimeout = Self(.inputTimeout, "The user did not answer in time.")
    package static let permissionLost = Self(
        .cancellationByUser,
        "The operation was cancelled: [access] no longer gives this client the permission."
    )
    package static let cancelledByUser = Self(.cancellationByUser, "The operation was cancelled.")
    package static let cancelledOnReader = Self(.cancellationByUser, "The operation was cancelled on the reader.")
    package static let cardRemoved = Self(.cancellationByUser, "The card was removed.")
}

extension HTTPFault {
    var failureStatus: FailureStatus {
        switch self {
        case .cancelled: .cancelledByUser
        case .timeout: .timeout
        case .unreachable, .privateServer: .connection
        case .broken, .tooLarge: .noAnswer
        case .unavailable(let words): .noNetworkProcess(words)
        case .lost(let words): .lostNetworkProcess(words)
        case .proxy(.unreachable, _): .proxyUnreachable
        case .proxy(.credentials, _): .proxyCredentials
        case .proxy(.login, _): .proxyLogin
        case .proxy(.method, _): .proxyMethod
        case .proxy(.refused(let status), _):
            switch status {
            case 300...399, 511: .proxyPage
            case 400, 405, 501: .proxyWithoutTunnels
            case 502...504: .proxyGateway
            default: .proxyRefused
            }
        case .tls(.notListed, _): .certificateNotListed
        case .tls(.notResumed, _): .sessionNotResumed
        case .tls: .tls
        }
    }
}
