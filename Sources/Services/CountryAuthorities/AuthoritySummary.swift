// SPDX-License-Identifier: GPL-3.0-or-later
package import EID
import Glibc
import Text

/// A summary of the trust anchors for people: GET_HEALTH, `trustAnchors`.
package struct AuthoritySummary: Sendable, Equatable {
    /// The authority whose key is the newest, and the last day of its certificate; nil: no authority is trusted.
    package struct Newest: Sendable, Equatable {
        package let name: String
        package let lastDay: CVDate
        package let use: AuthorityUse
    }

    package let newest: Newest?
    /// The number of link certificates that services have sent and that were stored.
    package let learnt: Int

    /// Sums up the anchors and the certificates in `LinkCertificateStore`.
    package init(_ anchors: TrustAnchors, learnt: [CVCertificate]) {
        self.learnt = learnt.count
        newest =
            Self.newest(.productive, in: anchors, learnt: learnt) ?? Self.newest(.test, in: anchors, learnt: learnt)
    }

    /// The authority of one use whose key is the newest.
    package static func newest(
        _ use: AuthorityUse,
        in anchors: TrustAnchors,
        learnt: [CVCertificate] = []
    ) -> Newest? {
        let roots = use == .productive ? anchors.productive : anchors.test
        let links = anchors.links + learnt
        // Of two certificates with the same last day the later one in the chain counts.
        let connected = TrustAnchors.connected(roots, links).reversed()
        return connected.max { $0.expirationDate < $1.expirationDate }.map {
            Newest(name: $0.holderName, lastDay: $0.expirationDate, use: use)
        }
    }
}

extension TrustAnchors {
    /// The roots and the links that lead from them to newer keys, in this order. Only names are compared.
    package static func connected(_ roots: [CVCertificate], _ links: [CVCertificate]) -> [CVCertificate] {
        var connected = roots
        var names = Set(roots.map(\.holderReference))
        // A link may come before the link that leads to it.
        while let next = links.first(where: { names.contains($0.authorityReference) && !connected.contains($0) }) {
            names.insert(next.holderReference)
            connected.append(next)
        }
        return connected
    }
}

extension CVCertificate {
    /// The name of the holder as text. Names of authorities have letters and digits only.
    package var holderName: String { String(decoding: holderReference, as: UTF8.self) }
    /// The name of the issuer as text.
    package var issuerName: String { String(decoding: authorityReference, as: UTF8.self) }
    /// Whether the holder has signed its own certificate.
    package var isRoot: Bool { authorityReference == holderReference }
}

extension CVDate {
    /// The current day in UTC, the time zone of certificates.
    package static var today: CVDate {
        let now = CalendarDay(of: time(nil))
        // If the clock is outside the years that certificates can name, this day makes all of them invalid.
        return CVDate(year: now.year, month: now.month, day: now.day) ?? .earliest
    }
}
