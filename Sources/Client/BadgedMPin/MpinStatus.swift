// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Text

/// How a call has ended.
public struct MpinStatus: Sendable, Equatable {
    /// The numbers of docs/protocol/mpin.md.
    public enum Code: Int, Sendable, CaseIterable {
        case ok = 0
        case pinInputCanceled
        case cryptoError
        case storageError
        case networkError
        case responseParseError
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
        case untrustedDomainError
    }

    public var status: Code
    /// The name of the status, such as `INCORRECT_PIN`.
    public var statusCodeAsString: String
    /// What has happened and what to do; empty after success.
    public var errorMessage: String

    public init(status: Code, statusCodeAsString: String, errorMessage: String = "") {
        self.status = status
        self.statusCodeAsString = statusCodeAsString
        self.errorMessage = errorMessage
    }

    public var isOK: Bool { status == .ok }

    /// Throws the status of a call that returns something else.
    func check() throws(ClientError) {
        guard !isOK else { return }
        throw .refused("\(statusCodeAsString), \(errorMessage)")
    }

    /// Reads MPIN_RESULT; nil if it has no known status.
    init?(_ json: JSON) {
        guard let status = json["status"]?.int.flatMap(Code.init), let name = json["statusCodeAsString"]?.string else {
            return nil
        }
        self.init(status: status, statusCodeAsString: name, errorMessage: json["errorMessage"]?.string ?? "")
    }
}
