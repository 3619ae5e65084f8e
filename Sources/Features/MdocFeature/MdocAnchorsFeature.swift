// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import CountryAuthorities
import Document
import Glibc
package import Host
package import Server
import Text

/// Says whom the site trusts for mobile documents. docs/protocol/mdoc.md.
@Loop package final class MdocAnchorsFeature: Feature {
    private let folder: MdocAnchorFolder
    private let fetch: MdocListFetch?
    private let time: @Sendable () -> Int

    /// - Parameters:
    ///   - folder: the authorities.
    ///   - fetch: what fetches their lists; nil: nothing is fetched.
    ///   - time: seconds since 1970.
    package init(
        _ folder: MdocAnchorFolder,
        fetch: MdocListFetch? = nil,
        time: @escaping @Sendable () -> Int = { Int(Loop.wallClock / 1000) }
    ) {
        self.folder = folder
        self.fetch = fetch
        self.time = time
    }

    package var commands: [CommandSpec] {
        [CommandSpec("GET_MDOC_ANCHORS", "MDOC_ANCHORS", permission: .documents, anchors)]
    }

    private func anchors(_ call: Call) async throws(Failure) -> Reply {
        let summary = await folder.summary(at: time())
        return Reply("MDOC_ANCHORS") { [folder] object in
            object.member("folder", folder.path)
            object.member("authorities", summary.authorities)
            object.member("countries", summary.countries)
            object.member("docTypes", summary.docTypes)
            object.member("links", summary.links)
            object.member("crls", summary.revocationLists)
            object.member("statusLists", summary.statusLists)
            if let newest = summary.newest { object.member("newest", DocumentTime.text(newest)) }
            object.member("warnings", summary.warnings)
        }
    }

    package func health() async -> [HealthCheck] {
        let summary = await folder.summary(at: time())
        return anchorChecks(summary) + (fetch?.checks(refusals: summary.refusals) ?? [])
    }

    private func anchorChecks(_ summary: MdocAnchorSummary) -> [HealthCheck] {
        let name = "mdocAnchors"
        let facts = [HealthCheck.Fact("authorities", summary.authorities), .init("folder", folder.path)]
        let unusable = HealthCheck.unusable(
            name,
            folder.path,
            command: "mdoc",
            unread: summary.unread,
            lists: summary.authorities > 0 ? summary.unusableLists.map { ($0.place, $0.fault) } : [],
            facts: facts
        )
        if let unusable { return [unusable] }
        guard summary.authorities == 0 else { return [HealthCheck(name, ok: true, facts: facts)] }
        let isMissing = access(folder.path, F_OK) != 0
        if isMissing, folder.mayBeMissing { return [HealthCheck(name, ok: true, facts: facts)] }
        return [
            HealthCheck(
                name,
                ok: false,
                isOptional: !isMissing,
                cause: isMissing
                    ? "the folder \(folder.path) is missing, so no mobile document can be called genuine"
                    : "no authority of mobile documents is trusted, so none can be called genuine",
                advice: "import the certificates: sudo badgectl mdoc anchors import FILE",
                facts: facts
            )
        ]
    }
}
