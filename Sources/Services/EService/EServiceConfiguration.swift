// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Glibc

/// What all online authentications of a daemon have in common.
package struct EServiceConfiguration: Sendable {
    /// How long things may take.
    package struct Limits: Sendable, Equatable {
        /// Until a connection stands, its handshake included.
        package var connect: Duration = .seconds(10)
        /// One request and its answer.
        package var transfer: Duration = .seconds(30)
        /// All requests of the TcToken or of the refresh address together.
        package var phase: Duration = .seconds(60)
        /// Telling the server of an error.
        package var farewell: Duration = .seconds(5)
        /// Redirects, one after the other.
        package var redirects = 10
        /// Transmit messages of one authentication.
        package var transmits = 1000

        package init() {}
    }

    package var trustAnchors = TrustAnchors()
    /// nil: link certificates are not kept.
    package var linkCertificates: LinkCertificateStore?
    package var userAgent: PAOSEnvelope.UserAgent
    package var limits = Limits()
    /// The day on which certificates have to be valid.
    package var today: @Sendable () -> CVDate = { CVDate.today }
    /// Takes lines for the log. Payloads never are, whether a server asks for it (`Pragma: no-log`) or not.
    package var log: @Sendable (String) -> Void = { _ in }
    /// The same for what whoever runs the daemon has to mend.
    package var warn: @Sendable (String) -> Void = { _ in }

    package init(userAgent: PAOSEnvelope.UserAgent) { self.userAgent = userAgent }
}

extension CVDate {
    /// In UTC, as certificates mean it. The C function is gmtime_r.
    package static var today: CVDate {
        var now = time(nil)
        var fields = tm()
        gmtime_r(&now, &fields)
        let date = CVDate(year: Int(fields.tm_year) + 1900, month: Int(fields.tm_mon) + 1, day: Int(fields.tm_mday))
        // A clock outside the years that certificates can name: nothing is valid then.
        return date ?? .earliest
    }
}
