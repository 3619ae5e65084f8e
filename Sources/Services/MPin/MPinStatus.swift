// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

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

/// Why a call failed.
package struct MPinFailure: Error, Sendable, Equatable {
    package let status: MPinStatus
    /// What happened and what to do; without secrets.
    package let text: String
    /// The HTTP status with which a server refused; nil for other failures.
    package let http: Int?

    package init(_ status: MPinStatus, _ text: String, http: Int? = nil) {
        (self.status, self.text, self.http) = (status, text, http)
    }

    /// Makes the failure for an error of the cryptography with values of a server.
    package init(_ error: CryptoError) {
        let text =
            error == .invalidPoint
            ? "a point of the server is not on the curve" : "a number of the server cannot be used: \(error)"
        self.init(.cryptoError, text)
    }

    /// Returns the same failure with advice after its text.
    package func advising(_ advice: String) -> MPinFailure { MPinFailure(status, "\(text): \(advice)", http: http) }

    /// The texts are for people and do not count.
    package static func == (left: MPinFailure, right: MPinFailure) -> Bool {
        left.status == right.status && left.http == right.http
    }
}
