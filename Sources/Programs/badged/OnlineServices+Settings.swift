// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import EIDFeature
import EService
import Glibc
import HTTP
import Host

extension OnlineServices {
    /// Makes the online services from the settings. Each authentication uses the trust anchors that `anchors` has then.
    init(
        _ settings: Settings,
        _ anchors: TrustAnchorFolder,
        _ proxies: ProxySettings?,
        environment: Environment = systemEnvironment
    ) {
        let version = Version.current.split(separator: ".").map { Int($0) ?? 0 } + [0, 0, 0]
        var configuration = EServiceConfiguration(
            userAgent: PAOSEnvelope.UserAgent(name: "badged", version: (version[0], version[1], version[2]))
        )
        // systemd sets STATE_DIRECTORY to the folder that the unit may write to.
        if let folder = environment("STATE_DIRECTORY"), !folder.isEmpty {
            configuration.linkCertificates = LinkCertificateStore(folder: "\(folder)/link-certificates")
        }
        if let day = settings.date, let date = CVDate(year: day.year, month: day.month, day: day.day) {
            configuration.today = { date }
            Log.notice("certificates are checked for the day of [eid] date, \(date.year)-\(date.month)-\(date.day)")
        }
        configuration.proxies = proxies
        configuration.log = { text in Log.notice("\(text)") }
        configuration.warn = { text in Log.warning("\(text)") }
        let final = configuration
        self.init(
            today: final.today,
            authorities: {
                AuthoritySummary(anchors.current(), learnt: final.linkCertificates?.load() ?? [])
            },
            connect: { url, isDeveloperMode in
                var configuration = final
                configuration.trustAnchors = anchors.current()
                return EServiceSession(tcTokenURL: url, isDeveloperMode: isDeveloperMode, configuration)
            }
        )
    }
}
