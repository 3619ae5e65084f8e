// SPDX-License-Identifier: GPL-3.0-or-later
package import CountryAuthorities
package import EID
package import HTTP

/// What all online authentications of the daemon share.
package struct EServiceConfiguration: Sendable {
    /// Limits of time and number.
    package struct Limits: Sendable, Equatable {
        /// For connecting, with the TLS handshake.
        package var connect: Duration = .seconds(10)
        /// For one request and its answer.
        package var transfer: Duration = .seconds(30)
        /// For all requests for the TcToken together, and for all of the refresh address together.
        package var phase: Duration = .seconds(60)
        /// For reporting an error to the server.
        package var errorReport: Duration = .seconds(5)
        /// The maximum number of redirects in a row.
        package var redirects = 10
        /// The maximum number of Transmit messages of one authentication.
        package var transmits = 1000
    }

    package var trustAnchors = TrustAnchors()
    /// nil when link certificates are not stored.
    package var linkCertificates: LinkCertificateStore?
    package var network = Network()
    package var userAgent: PAOSEnvelope.UserAgent
    package var limits = Limits()
    /// Returns the day on which certificates must be valid.
    package var today: @Sendable () -> CVDate = { CVDate.today }
    /// Logs a line. Contents of messages are never logged, with or without `Pragma: no-log`.
    package var log: @Sendable (String) -> Void = { _ in }
    /// Logs a warning about a fault that the administrator must repair.
    package var warn: @Sendable (String) -> Void = { _ in }

    package init(userAgent: PAOSEnvelope.UserAgent) { self.userAgent = userAgent }
}
