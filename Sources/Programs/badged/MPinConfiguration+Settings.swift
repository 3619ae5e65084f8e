// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Host
import MPin

extension MPinConfiguration {
    /// What the daemon uses for M-Pin servers.
    init(_ proxies: ProxySettings?) {
        self.init(userAgent: "badged/\(Version.current)")
        self.proxies = proxies
    }
}
