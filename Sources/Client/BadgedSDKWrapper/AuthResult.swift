// SPDX-License-Identifier: Apache-2.0
public import FoundationEssentials
import Text

/// How an online authentication ended: the last AUTH.
public struct AuthResult: Sendable, Equatable {
    /// The address that the browser or app opens next.
    public let url: URL?
    /// nil when the message has only a URL.
    public let result: AuthResultData?

    public init(url: URL?, result: AuthResultData?) {
        self.url = url
        self.result = result
    }

    public var hasError: Bool { result?.major.contains("resultmajor#error") ?? false }
}

/// The member `result` of AUTH. TR-03112-1 4.
public struct AuthResultData: Sendable, Equatable {
    public let major: String
    public let minor: String?
    public let language: String?
    public let description: String?
    public let message: String?
    /// A name from the list of failure reasons.
    public let reason: String?

    public init(
        major: String,
        minor: String? = nil,
        language: String? = nil,
        description: String? = nil,
        message: String? = nil,
        reason: String? = nil
    ) {
        self.major = major
        self.minor = minor
        self.language = language
        self.description = description
        self.message = message
        self.reason = reason
    }

    public var isCancellationByUser: Bool { minor?.contains("cancellationByUser") ?? false }

    init?(_ json: JSON) {
        guard let major = json["major"]?.string else { return nil }
        self.init(
            major: major,
            minor: json["minor"]?.string,
            language: json["language"]?.string,
            description: json["description"]?.string,
            message: json["message"]?.string,
            reason: json["reason"]?.string
        )
    }
}
