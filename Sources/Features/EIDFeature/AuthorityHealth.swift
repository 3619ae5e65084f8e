// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import Host

/// The check `trustAnchors` of GET_HEALTH. docs/protocol/eid.md, Country authorities.
enum AuthorityHealth {
    static func check(_ summary: AuthoritySummary, on day: CVDate) -> HealthCheck {
        let learnt = HealthCheck.Fact("linksLearnt", summary.learnt)
        guard let newest = summary.newest else {
            return HealthCheck(
                "trustAnchors",
                ok: false,
                cause: "no country authority is trusted, so every authentication fails",
                advice: "import the certificates: sudo badgectl anchors import",
                facts: [learnt]
            )
        }
        let isValid = day <= newest.lastDay
        return HealthCheck(
            "trustAnchors",
            ok: isValid,
            cause: isValid
                ? nil
                : "the certificate of \(newest.name) was valid until \(newest.lastDay.text), and no newer one is known",
            advice: isValid ? nil : "import newer certificates: sudo badgectl anchors import",
            facts: [HealthCheck.Fact("newest", newest.name), HealthCheck.Fact("lastDay", newest.lastDay.text), learnt]
        )
    }
}
