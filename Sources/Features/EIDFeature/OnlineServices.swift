// SPDX-License-Identifier: GPL-3.0-or-later
package import CountryAuthorities
package import EID
package import EService
package import Host

/// Connects workflows to services. The program wires an implementation.
package struct OnlineServices: Sendable {
    /// Makes a dialogue with the service of a TcToken address. Developer mode applies the rules of test services.
    package let connect: @Sendable (_ tcTokenURL: String, _ developerMode: Bool) -> any EServiceConnection
    /// Whether clients may use developer mode.
    let allowsDeveloperMode: Bool
    package let today: @Sendable () -> CVDate
    /// Returns what is known of the trusted country authorities; nil when services are not checked by authorities.
    package let authorities: @Sendable () -> AuthoritySummary?
    /// The folder of the trust anchors.
    package let anchorFolder: String?
    /// Checks whether connections to services are possible on this host; nil when there are none.
    package let transport: (@Sendable () -> HealthCheck)?

    package init(
        allowsDeveloperMode: Bool,
        today: @escaping @Sendable () -> CVDate,
        authorities: @escaping @Sendable () -> AuthoritySummary? = { nil },
        anchorFolder: String? = nil,
        transport: (@Sendable () -> HealthCheck)? = nil,
        connect: @escaping @Sendable (_ tcTokenURL: String, _ developerMode: Bool) -> any EServiceConnection
    ) {
        self.allowsDeveloperMode = allowsDeveloperMode
        (self.connect, self.today, self.transport) = (connect, today, transport)
        (self.authorities, self.anchorFolder) = (authorities, anchorFolder)
    }
}
