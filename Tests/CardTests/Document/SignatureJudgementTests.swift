// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import TestSupport
import Testing
import Text

/// Who may sign what a verdict rests on. Each case of `trust.json` and `chains.json` has one document and the files of a
/// folder with authorities. Tests/Vectors/documents/README.md.
@Suite("Signatures and who has made them", .timeLimit(.minutes(10)))
struct SignatureJudgementTests {
    static let cases = DocumentCatalogue.trust.documents
    static let chains = DocumentCatalogue.chains.documents

    /// The files of the folder. Their order must not count.
    private func anchors(_ entry: DocumentCatalogue.Entry, isReversed: Bool) throws -> DocumentAnchors {
        let names = (entry.expect["trust"]?.members ?? []).map { ($0.key, $0.value.string ?? "") }
        let blobs = [DocumentCatalogue.trust, DocumentCatalogue.chains].map(\.blobs)
        let files = names.map { name in (name: name.0, content: blobs.compactMap { $0[name.1] }.first ?? []) }
        #expect(!files.contains { $0.content.isEmpty })
        var anchors = DocumentAnchors()
        anchors.requiresRevocationList = entry.expect["requiresRevocationList"]?.bool == true
        _ = anchors.addFiles(isReversed ? files.reversed() : files, at: DocumentCatalogue.time)
        return anchors
    }

    @Test("all cases are there")
    func count() {
        #expect(Self.cases.count == 178)
        #expect(Self.cases.count { $0.expect["verdict"]?.string?.hasPrefix("genuine") == true } == 76)
        #expect(Self.chains.count == 208)
        #expect(Self.chains.count { $0.expect["verdict"]?.string?.hasPrefix("genuine") == true } == 84)
    }

    @Test(
        "no forgery is genuine, and nothing odd is suspect, in whatever order the files come",
        arguments: cases + chains
    )
    func verdict(entry: DocumentCatalogue.Entry) async throws {
        for isReversed in [false, true] {
            let anchors = try anchors(entry, isReversed: isReversed)
            var test = try TestReading(entry, groups: [1, 2])
            try await test.run(anchors)
            let checks = test.reading.checks
            #expect(checks.verdict.rawValue == entry.expect["verdict"]?.string, "\(checks)")
            if let list = entry.expect["crl"]?.string { #expect(checks.authority.revocation.rawValue == list) }
            for finding in entry.expect["findings"]?.array ?? [] {
                #expect(checks.document.findings.contains { "\($0)" == finding.string }, "\(checks)")
            }
            guard let fault = entry.expect["fault"]?.array?.compactMap(\.string), fault.count == 2 else { continue }
            let reasons =
                switch fault[0] {
                case "hashes": [checks.hashes.reason?.rawValue]
                case "signature": [checks.signature.reason?.rawValue]
                case "authority": [checks.authority.reason?.rawValue]
                default: checks.chip.runs.map(\.reason?.rawValue)
                }
            #expect(reasons.contains(fault[1]), "\(checks)")
        }
    }
}
