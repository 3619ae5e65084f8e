// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import EID
package import ISO7816
package import Taps

/// Reads the credential of a card or phone with PKOC.
package struct PKOCTapReader: TapReader {
    package let cardKind: (any CardKind)? = PKOCCardKind()
    /// A card with Aliro may have PKOC, too.
    package let kinds = [TapProfile.pkoc, TapProfile.aliro]
    private let site: PKOCSite
    private let today: @Sendable () -> CVDate

    /// `site` says how cards are read. `today` is the day for which certificates are checked.
    package init(_ site: PKOCSite, today: @escaping @Sendable () -> CVDate) { (self.site, self.today) = (site, today) }

    package var acceptsCards: Bool { !site.isValidated || !site.issuers.isEmpty }

    package func read(_ channel: any CardChannel, _ tap: TapRequest) async throws(CardError) -> TapReport? {
        guard let reader = try await PKOCReader.select(on: channel) else { return nil }
        switch try await reader.read(for: site, on: today()) {
        case .failed(let problem, let edition):
            return TapReport(technology: edition.rawValue, result: .failed(problem.rawValue))
        case .credential(let credential):
            var proven = TapReport.Proven(key: credential.key, transaction: credential.transaction)
            proven.certificate = credential.certificate.map { ($0, credential.certificateProblem) }
            return TapReport(technology: credential.edition.rawValue, result: .proven(proven))
        }
    }
}

/// Recognises a card or phone with PKOC.
struct PKOCCardKind: CardKind {
    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        try await PKOCReader.select(on: channel).map { TapProfile(kind: TapProfile.pkoc, versions: $0.versions.values) }
    }
}
