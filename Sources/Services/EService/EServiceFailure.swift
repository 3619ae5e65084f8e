// SPDX-License-Identifier: GPL-3.0-or-later

/// Why an online authentication failed.
package struct EServiceFailure: Error, Sendable {
    package let reason: FailureCode
    package let status: FailureStatus
    /// The result that the eID-Server sent, when the server ended the dialogue.
    package let serverResult: ECardResult?
    /// Text for the log, such as an error text of libcurl or OpenSSL; never a secret or the content of a message.
    package let detail: String

    package init(
        _ reason: FailureCode,
        _ status: FailureStatus,
        serverResult: ECardResult? = nil,
        detail: String = ""
    ) {
        (self.reason, self.status) = (reason, status)
        (self.serverResult, self.detail) = (serverResult, detail)
    }

    /// The result for AUTH and for the eID-Server.
    package var result: ECardResult { serverResult ?? ECardResult(status) }
}

extension EServiceFailure: Equatable {
    /// Compares everything except the words for the log.
    package static func == (a: EServiceFailure, b: EServiceFailure) -> Bool {
        a.reason == b.reason && a.status == b.status && a.serverResult == b.serverResult
    }
}
