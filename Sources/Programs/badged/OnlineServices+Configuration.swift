// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import EIDFeature
import EService
import Glibc
import HTTP
import Host
import Text

extension OnlineServices {
    /// Makes the online services from the configuration. Each authentication uses the trust anchors that `anchors` has
    /// then.
    init(
        _ configuration: Configuration,
        _ anchors: TrustAnchorFolder,
        _ network: Network,
        environment: Environment = systemEnvironment
    ) {
        var services = EServiceConfiguration(
            userAgent: PAOSEnvelope.UserAgent(name: "badged", version: Version.numbers)
        )
        // systemd sets STATE_DIRECTORY to the folder that the unit may write to.
        if let folder = environment("STATE_DIRECTORY"), !folder.isEmpty {
            services.linkCertificates = LinkCertificateStore(folder: "\(folder)/link-certificates")
        }
        if let day = configuration.date, let date = CVDate(year: day.year, month: day.month, day: day.day) {
            services.today = { date }
            Log.notice("certificates are checked for the day of [eid] date, \(date.year)-\(date.month)-\(date.day)")
        }
        services.network = network
        services.log = { text in Log.notice("\(text)") }
        services.warn = { text in Log.warning("\(text)") }
        let final = services
        self.init(
            allowsDeveloperMode: configuration.allowsDeveloperMode,
            today: final.today,
            authorities: {
                AuthoritySummary(anchors.current(), learnt: final.linkCertificates?.load() ?? [])
            },
            anchorFolder: anchors.path,
            transport: {
                let fault = network.fault
                let advice: Phrase =
                    "install badged again, and start badged-network.socket; without it no service can be reached"
                return HealthCheck(
                    "network",
                    ok: fault == nil,
                    cause: fault,
                    advice: fault == nil ? nil : advice
                )
            },
            connect: { url, isDeveloperMode in
                var services = final
                services.trustAnchors = anchors.current()
                return EServiceSession(tcTokenURL: url, isDeveloperMode: isDeveloperMode, services)
            }
        )
    }
}
