// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import Host

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
                advice: "import the certificates: sudo badgectl anchors import",
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
