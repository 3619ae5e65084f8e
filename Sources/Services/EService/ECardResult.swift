// SPDX-License-Identifier: GPL-3.0-or-later

/// The `Result` of an eCard-API message. TR-03112-1, 4.1.
package struct ECardResult: Sendable, Equatable {
    package enum Major: String, Sendable, CaseIterable {
        case ok = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#ok"
        case warning = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#warning"
        case error = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor#error"
    }

    /// Who found the error. The refresh address gets clientError or serverError accordingly.
    package enum Origin: Sendable {
        case client, server
    }

    package let major: Major
    package let minor: ResultMinor?
    /// A text for a person; in English, unless it comes from a server.
    package let message: String?
    package let origin: Origin

    package init(_ major: Major, _ minor: ResultMinor? = nil, message: String? = nil, origin: Origin = .client) {
        (self.major, self.minor, self.message, self.origin) = (major, minor, message, origin)
    }

    /// Makes the error result for a status.
    package init(_ status: FailureStatus) {
        self.init(.error, status.minor, message: status.message)
    }

    package static let ok = ECardResult(.ok)

    /// False for a warning.
    package var isError: Bool { major == .error }
}
