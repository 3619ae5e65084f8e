// SPDX-License-Identifier: GPL-3.0-or-later
import Aliro
import Cards
import Concurrency
import ISO7816
import Text

/// Recognises a card or phone that supports Aliro, and reads its credential if a client wants it.
///
/// A card may support PKOC, too. Aliro is tried first, because it authenticates both sides. PKOC is tried if the card
/// refuses this reader in Aliro, as a phone without a key for this reader does.
struct AliroCardKind: CardKind {
    private let watch: CredentialWatch
    private let site: AliroSite
    private let bonds: AliroBonds
    private let next: PKOCCardKind

    init(_ watch: CredentialWatch, _ site: AliroSite, _ bonds: AliroBonds, next: PKOCCardKind) {
        (self.watch, self.site, self.bonds, self.next) = (watch, site, bonds, next)
    }

    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        guard let reader = try await AliroReader.select(on: channel) else { return nil }
        var profile = AliroProfile(application: reader.application)
        guard await watch.isWanted else { return profile }
        let reading = try await reader.read(for: site, bonds: site.allowsFast ? await bonds.known() : [])
        switch reading {
        case .credential(let credential):
            if site.allowsFast, let bond = credential.bond { await bonds.keep(bond) }
        case .failed(.refused):
            if let other = try await next.recognize(channel, answerToReset: answerToReset) { return other }
        case .failed: break
        }
        profile.report = CredentialReport(reading)
        return profile
    }
}

/// A card with Aliro in READER. The key and its numbers are only in CREDENTIAL, which needs another permission.
struct AliroProfile: CredentialProfile {
    static let kind: StaticString = "aliro"

    let application: AliroApplication
    /// nil: no client wanted the credential.
    var report: CredentialReport?

    var members: [JSON.Member] {
        let texts = application.versions.map { JSON.string("\($0 >> 8).\($0 & 0xFF)") }
        return [JSON.Member("versions", .array(texts))]
    }

    /// No workflow uses the card.
    var isUsable: Bool { false }

    /// A tap ends the dialogue, so the next program needs a reset.
    var needsReset: Bool { report != nil }
}
