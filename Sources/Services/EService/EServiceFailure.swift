// SPDX-License-Identifier: GPL-3.0-or-later

/// Why the web side of an online authentication cannot go on.
package struct EServiceFailure: Error, Sendable {
    package let reason: FailureCode
    package let status: FailureStatus
    /// What the eID-Server said of it, where it is the one that gave up.
    package let serverResult: ECardResult?
    /// For the log: host, curl's or OpenSSL's words. Never a secret, never content of a message.
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

    /// For AUTH, and for the eID-Server.
    package var result: ECardResult { serverResult ?? ECardResult(status) }
}

extension EServiceFailure: Equatable {
    /// The words for the log do not count.
    package static func == (a: EServiceFailure, b: EServiceFailure) -> Bool {
        a.reason == b.reason && a.status == b.status && a.serverResult == b.serverResult
    }
}
