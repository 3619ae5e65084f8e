// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Host
import MPin

extension MPinConfiguration {
    /// What the daemon uses for M-Pin servers.
    static func read(_ settings: Settings, _ proxies: ProxySettings?) throws(StartError) -> MPinConfiguration {
        var configuration = MPinConfiguration(userAgent: "badged/\(Version.current)")
        configuration.proxies = proxies
        for domain in settings.trustedDomains where !configuration.domains.add(domain) {
            throw .inConfiguration(
                "[mpin] trusted_domains has '\(domain)'",
                hint: "allowed: a comma-separated list of host names such as example.org"
            )
        }
        return configuration
    }
}
