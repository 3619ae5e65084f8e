// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Text

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
        self.reason = reason
        self.status = status
        self.serverResult = serverResult
        self.detail = detail
    }

    /// A request got no answer. Without `status`, the failure is reported as the fault of the connection.
    init(_ reason: FailureCode, _ fault: HTTPFault, _ status: FailureStatus? = nil) {
        self.init(reason, status ?? fault.failureStatus, detail: "\(fault.text(Phrase("the server")))")
    }

    /// The user has cancelled, or the client or the daemon has ended.
    static let cancelled = EServiceFailure(.userCancelled, .cancelledByUser)

    /// The result for AUTH and for the eID-Server.
    package var result: ECardResult { serverResult ?? ECardResult(status) }
}

extension EServiceFailure: Equatable {
    /// Compares everything except the words for the log.
    package static func == (a: EServiceFailure, b: EServiceFailure) -> Bool {
        a.reason == b.reason && a.status == b.status && a.serverResult == b.serverResult
    }
}
