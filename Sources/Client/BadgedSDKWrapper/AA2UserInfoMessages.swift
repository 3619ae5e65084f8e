// SPDX-License-Identifier: Apache-2.0
import Text

/// Texts that iOS shows beside its NFC dialogue: `messages` of the RUN commands. They have no effect on Linux.
public struct AA2UserInfoMessages: Sendable, Equatable, Encodable {
    let sessionStarted: String?
    let sessionFailed: String?
    let sessionSucceeded: String?
    let sessionInProgress: String?

    public init(
        sessionStarted: String? = "",
        sessionFailed: String? = "",
        sessionSucceeded: String? = "",
        sessionInProgress: String? = ""
    ) {
        self.sessionStarted = sessionStarted
        self.sessionFailed = sessionFailed
        self.sessionSucceeded = sessionSucceeded
        self.sessionInProgress = sessionInProgress
    }

    var json: JSON {
        .object(
            [
                ("sessionStarted", sessionStarted), ("sessionFailed", sessionFailed),
                ("sessionSucceeded", sessionSucceeded), ("sessionInProgress", sessionInProgress),
            ].compactMap { key, text in text.map { .init(key, .string($0)) } }
        )
    }
}
