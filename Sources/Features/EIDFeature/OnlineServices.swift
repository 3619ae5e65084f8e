// SPDX-License-Identifier: GPL-3.0-or-later
package import CountryAuthorities
package import EID
package import EService

/// Connects workflows to services. The program wires an implementation.
package struct OnlineServices: Sendable {
    /// Makes a dialogue with the service of a TcToken address. Developer mode applies the rules of test services.
    package let connect: @Sendable (_ tcTokenURL: String, _ developerMode: Bool) -> any EServiceConnection
    package let today: @Sendable () -> CVDate
    /// Returns what is known of the trusted country authorities; nil when services are not checked by authorities.
    package let authorities: @Sendable () -> AuthoritySummary?

    package init(
        today: @escaping @Sendable () -> CVDate,
        authorities: @escaping @Sendable () -> AuthoritySummary? = { nil },
        connect: @escaping @Sendable (_ tcTokenURL: String, _ developerMode: Bool) -> any EServiceConnection
    ) {
        (self.connect, self.today, self.authorities) = (connect, today, authorities)
    }
}
