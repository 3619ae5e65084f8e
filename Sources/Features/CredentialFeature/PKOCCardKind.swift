// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
import Concurrency
package import ISO7816
import PKOC
package import Text

/// Recognises a PKOC card or phone, and reads its credential if a client wants it.
package struct PKOCCardKind: CardKind {
    private let watch: CredentialWatch

    package init(_ watch: CredentialWatch) { self.watch = watch }

    package func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        guard let reader = try await PKOCReader.select(on: channel) else { return nil }
        var profile = PKOCProfile(versions: reader.versions)
        if await watch.isWanted { profile.reading = try await reader.read(for: watch.site, on: watch.today()) }
        return profile
    }
}

/// A PKOC card in READER. The key and its numbers are only in CREDENTIAL, which needs another permission.
package struct PKOCProfile: CredentialProfile {
    package static let kind: StaticString = "pkoc"

    let versions: PKOCVersions
    /// nil: no client wanted the credential.
    var reading: PKOCReading?

    var report: CredentialReport? { reading.map(CredentialReport.init) }

    package var members: [JSON.Member] {
        let texts = versions.values.map { JSON.string("\($0 >> 8).\($0 & 0xFF)") }
        return [JSON.Member("versions", .array(texts))]
    }

    /// No workflow uses the card.
    package var isUsable: Bool { false }

    /// A phone signs once per activation, so the next program needs a reset.
    package var needsReset: Bool { reading != nil }
}
