// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// The result of a call, with the numbers of the Milagro Mobile SDK.
package enum MPinStatus: Int, Sendable, CaseIterable {
    case ok = 0
    /// The user has cancelled at the question for the PIN.
    case pinInputCanceled
    /// A point is not on the curve, a number is out of range, or libcrypto failed.
    case cryptoError
    case storageError
    case networkError
    case responseParseError
    /// The call does not fit the state of the user, or there is no backend.
    case flowError
    case identityNotAuthorized
    case identityNotVerified
    case requestExpired
    case revoked
    case incorrectPIN
    case incorrectAccessNumber
    case httpServerError
    case httpRequestError
    case badUserAgent
    case clientSecretExpired
    case untrustedDomain

    /// The name in the SDK.
    package var name: String {
        switch self {
        case .ok: "OK"
        case .pinInputCanceled: "PIN_INPUT_CANCELED"
        case .cryptoError: "CRYPTO_ERROR"
        case .storageError: "STORAGE_ERROR"
        case .networkError: "NETWORK_ERROR"
        case .responseParseError: "RESPONSE_PARSE_ERROR"
        case .flowError: "FLOW_ERROR"
        case .identityNotAuthorized: "IDENTITY_NOT_AUTHORIZED"
        case .identityNotVerified: "IDENTITY_NOT_VERIFIED"
        case .requestExpired: "REQUEST_EXPIRED"
        case .revoked: "REVOKED"
        case .incorrectPIN: "INCORRECT_PIN"
        case .incorrectAccessNumber: "INCORRECT_ACCESS_NUMBER"
        case .httpServerError: "HTTP_SERVER_ERROR"
        case .httpRequestError: "HTTP_REQUEST_ERROR"
        case .badUserAgent: "BAD_USER_AGENT"
        case .clientSecretExpired: "CLIENT_SECRET_EXPIRED"
        case .untrustedDomain: "UNTRUSTED_DOMAIN_ERROR"
        }
    }
}

extension MPinStatus {
    /// What the refusal of a server means, and what to do. `isBlocked`: it refuses every further try.
    func explanation(isBlocked: Bool) -> Phrase {
        switch self {
        case .incorrectPIN where isBlocked:
            "the PIN is wrong, and the service has blocked the user. Delete the user and register again"
        case .incorrectPIN: "the PIN is wrong. After further wrong PINs the service blocks the user"
        case .identityNotAuthorized: "the service refuses this user. Ask its operator"
        case .identityNotVerified: "the identity is not confirmed. Follow the e-mail of the service, then try again"
        case .requestExpired: "the service has waited too long. Start again"
        case .revoked: "the service has revoked the user. Ask its operator"
        case .incorrectAccessNumber: "the access number is wrong or has expired. Use the one that the browser shows now"
        case .clientSecretExpired: "the service has new secrets. Delete the user and register again"
        case .badUserAgent: "the service refuses the header User-Agent. Set another one"
        case .httpServerError: "the service has a fault. Try again later"
        case .httpRequestError: "the service refuses the request. Check the address of the service"
        case .networkError: "the service is not at this address. Check it"
        case .responseParseError: "badged cannot read this answer. Ask the operator of the service"
        case .ok, .pinInputCanceled, .cryptoError, .storageError, .flowError, .untrustedDomain: Phrase(verbatim: name)
        }
    }
}

extension Failure {
    /// A call has failed. `http` is the HTTP status with which a server refused; nil for other failures.
    package init(_ status: MPinStatus, _ text: Phrase, advice: Phrase? = nil, http: Int? = nil) {
        let details = http.map { [JSON.Member("http", .number(String($0)))] } ?? []
        self.init(Code(status.name), text, advice: advice, details: details)
    }

    /// The result of the call: a failure of the parts below has the status of its kind.
    package var status: MPinStatus {
        if let status = MPinStatus.allCases.first(where: { $0.name == code.rawValue }) { return status }
        return switch code {
        case .cancelled, .timedOut: .pinInputCanceled
        case .wrongArgument, .missingArgument, .accessDenied, .tooManyWorkflows: .flowError
        default: .storageError
        }
    }

    package var http: Int? { self["http"]?.int }

    /// An error of the cryptography with values of a server.
    package static func ofServer(_ error: CryptoError) -> Failure {
        let text: Phrase =
            error == .invalidPoint
            ? "a point of the server is not on the curve" : "a number of the server cannot be used: \(error)"
        return Failure(.cryptoError, text)
    }

    /// Returns the same failure with advice after its text.
    package func advising(_ advice: Phrase) -> Failure {
        var failure = self
        failure.text = message
        failure.advice = advice
        return failure
    }
}

/// Runs cryptography with values of a server.
package func serverValues<Value: ~Copyable>(
    _ value: @autoclosure () throws(CryptoError) -> Value
) throws(Failure) -> Value {
    try translating(Failure.ofServer, value())
}
