// SPDX-License-Identifier: GPL-3.0-or-later
package import CountryAuthorities
package import EID
package import EService
package import Host
import Text

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
        self.connect = connect
        self.today = today
        self.transport = transport
        self.authorities = authorities
        self.anchorFolder = anchorFolder
    }
}

/// The check `trustAnchors` of GET_HEALTH. docs/protocol/eid.md, Country authorities.
enum AuthorityHealth {
    /// `folder`: the folder of the trust anchors, so that `badgectl anchors` can use the same one.
    static func check(_ summary: AuthoritySummary, in folder: String?, on day: CVDate) -> HealthCheck {
        let common = [HealthCheck.Fact("linksLearnt", summary.learnt)] + (folder.map { [.init("folder", $0)] } ?? [])
        guard let newest = summary.newest else {
            return HealthCheck(
                "trustAnchors",
                ok: false,
                cause: "no country authority is trusted, so every authentication fails",
                advice: KnownAuthority.advice(after: nil, .productive, on: day),
                facts: common
            )
        }
        let isValid = day <= newest.lastDay
        return HealthCheck(
            "trustAnchors",
            ok: isValid,
            cause: isValid
                ? nil
                : "the certificate of \(newest.name) was valid until \(newest.lastDay.text), and no newer one is known",
            advice: isValid ? nil : KnownAuthority.advice(after: newest.name, newest.use, on: day),
            facts: [HealthCheck.Fact("newest", newest.name), HealthCheck.Fact("lastDay", newest.lastDay.text)] + common
        )
    }
}
