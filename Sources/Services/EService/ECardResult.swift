// SPDX-License-Identifier: GPL-3.0-or-later

/// The `Result` of an eCard-API message: how something ended. TR-03112-1, 4.1.
package struct ECardResult: Sendable, Equatable {
    package enum Major: String, Sendable, CaseIterable {
        case ok = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#ok"
        case warning = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#warning"
        case error = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#error"
    }

    /// Whose finding it is; decides between clientError and serverError at the refresh address.
    package enum Origin: Sendable {
        case client, server
    }

    package let major: Major
    package let minor: ResultMinor?
    /// In words, English unless it comes from a server.
    package let message: String?
    package let origin: Origin

    package init(_ major: Major, _ minor: ResultMinor? = nil, message: String? = nil, origin: Origin = .client) {
        (self.major, self.minor, self.message, self.origin) = (major, minor, message, origin)
    }

    /// The error that this status is.
    package init(_ status: FailureStatus) {
        self.init(.error, status.minor, message: status.message)
    }

    package static let ok = ECardResult(.ok)

    /// A warning is no error.
    package var isError: Bool { major == .error }
}
