// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import ISO7816
package import Store
package import Taps

/// Reads the credential of a card or phone with Aliro.
package struct AliroTapReader: TapReader {
    package let cardKind: (any CardKind)? = AliroCardKind()
    package let kinds = [TapProfile.aliro]
    private let site: AliroSite
    private let bonds: AliroBonds
    private let listed: ListedCredentials?

    /// `site` says how cards are read. `store` keeps what the fast phase needs. The keys of the list count in validated
    /// mode.
    package init(_ site: AliroSite, _ store: StateStore, listed: ListedCredentials? = nil) {
        self.site = site
        bonds = AliroBonds(store, site)
        self.listed = listed
    }

    package var acceptsCards: Bool { !site.isValidated || !site.credentials.isEmpty }

    package func prepare() async { if site.allowsFast { _ = await bonds.known() } }

    package func read(_ channel: any CardChannel, _ tap: TapRequest) async throws(CardError) -> TapReport? {
        guard let reader = try await AliroReader.select(on: channel) else { return nil }
        let result: TapReport.Result
        let known = site.allowsFast ? await bonds.known() : []
        let reading = try await reader.read(
            for: site,
            bonds: known,
            isListed: { [listed] key in
                await listed?.isListed(key) ?? false
            }
        )
        switch reading {
        case .credential(let credential):
            if site.allowsFast, let bond = credential.bond { await bonds.keep(bond) }
            var proven = TapReport.Proven(key: credential.key, transaction: credential.transaction)
            proven.phase = credential.phase.rawValue
            result = .proven(proven)
        case .failed(.refused): result = .refused
        case .failed(let problem): result = .failed(problem.rawValue)
        }
        return TapReport(technology: "Aliro", result: result)
    }

    /// Returns when what the fast phase needs is on the disk.
    func settled() async { await bonds.settled() }
}

/// Recognises a card or phone with Aliro.
struct AliroCardKind: CardKind {
    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        try await AliroReader.select(on: channel).map {
            TapProfile(kind: TapProfile.aliro, versions: $0.application.versions)
        }
    }
}
