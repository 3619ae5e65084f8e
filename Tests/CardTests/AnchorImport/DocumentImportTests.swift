// SPDX-License-Identifier: GPL-3.0-or-later
import AnchorImport
import CountryAuthorities
import Document
import Foundation
import TestSupport
import Testing
import Text

/// Which authorities of documents an import takes, and what the folder gives afterwards.
@Suite("import of authorities of documents", .timeLimit(.minutes(5))) struct DocumentImportTests {
    private static let catalogue = DocumentCatalogue.shared

    private static func run(
        _ names: [String],
        present: [String] = [],
        accepts: Bool = false
    ) throws -> DocumentAnchorImport {
        var anchors = DocumentAnchors()
        for name in present { try anchors.trust(try catalogue.certificate(name)) }
        var chosen = DocumentAnchorImport(present: anchors, at: DocumentCatalogue.time)
        for name in names { chosen.add(name, try #require(catalogue.pki[name])) }
        chosen.decide()
        if accepts { chosen.accept(chosen.questions) }
        chosen.finish()
        return chosen
    }

    @Test("what nobody who is trusted has signed is asked for, and nothing is taken without an answer")
    func question() throws {
        var chosen = DocumentAnchorImport(present: DocumentAnchors(), at: DocumentCatalogue.time)
        chosen.add("masterlist.ml", try #require(Self.catalogue.pki["masterlist.ml"]))
        chosen.decide()
        let question = try #require(chosen.questions.first)
        #expect(chosen.questions.count == 1)
        #expect(question.countries.contains("UT"))
        #expect(question.authorities > 1)
        #expect(question.fingerprint == (try Self.catalogue.certificate("ml-signer")).fingerprint)
        #expect(chosen.files.isEmpty)
        #expect(chosen.anchors.count == 0)
        chosen.accept(chosen.questions)
        #expect(chosen.anchors.count == question.authorities)
        #expect(chosen.files.keys.allSatisfy { $0.hasSuffix(".cer") })
        #expect(chosen.files.keys.contains { $0.hasPrefix("UT-") && $0.hasSuffix(".link.cer") })
    }

    @Test("a list whose signer a trusted authority has certified is taken without a question")
    func trustedList() throws {
        let all = ["csca-0-sha1", "csca-1-rsa", "csca-2-brainpool", "csca-3-pss", "csca-4-same-name"]
        let chosen = try Self.run(["masterlist.ml", "csca-2.crl", "link-2-3.cer"], present: all)
        #expect(chosen.questions.isEmpty)
        #expect(chosen.complaints == [])
        #expect(chosen.files.keys.contains { $0.hasSuffix(".crl") })
    }

    @Test(
        "a file with a fault adds nothing, and the reason is told",
        arguments: [
            ("masterlist-wrong-signature.ml", "signature of the master list"),
            ("masterlist-wrong-digest.ml", "signature of the master list"),
            ("masterlist-wrong-signer.ml", "not for master lists"),
            ("csca-2-wrong-signature.crl", "its signature is wrong"),
            ("ds-unknown.cer", "of no trusted authority"), ("csca-unknown.cer", "is not trusted"),
        ]
    )
    func faults(name: String, reason: String) throws {
        let chosen = try Self.run([name], present: ["csca-1-rsa", "csca-2-brainpool", "csca-3-pss"])
        #expect(chosen.files.isEmpty)
        #expect(chosen.complaints.count == 1)
        #expect(chosen.complaints.first?.contains(reason) == true, "\(chosen.complaints)")
    }

    @Test("an archive and other bytes are told apart")
    func otherFiles() throws {
        var chosen = DocumentAnchorImport(present: DocumentAnchors(), at: DocumentCatalogue.time)
        chosen.add("a.zip", [0x50, 0x4B, 0x03, 0x04, 0x00])
        chosen.add("a.txt", Array("hello".utf8))
        chosen.add("empty", [])
        chosen.decide()
        #expect(chosen.complaints.count == 3)
        #expect(chosen.complaints[0].contains("unpack it"))
    }

    @Test("what an import has written is what the folder gives, and a changed file is read again")
    func folder() async throws {
        let chosen = try Self.run(["icaopkd-ml.ldif", "csca-2.crl"], accepts: true)
        let temporary = try TemporaryFolder()
        let path = temporary.path + "/csca"
        try AnchorWriter(folder: path).write(chosen.files)
        let folder = DocumentAnchorFolder(path, warn: { _ in })
        let summary = await folder.summary(at: DocumentCatalogue.time)
        #expect(summary.authorities == chosen.anchors.count)
        #expect(summary.revocationLists == 1)
        #expect(summary.warnings == [])
        #expect(summary.newest != nil)
        let anchors = await folder.anchors(at: DocumentCatalogue.time)
        #expect(anchors.count == chosen.anchors.count)
        #expect(anchors.linkCount == chosen.anchors.linkCount)
        let one = try #require(chosen.files.keys.first { $0.hasSuffix(".crl") })
        try FileManager.default.removeItem(atPath: "\(path)/\(one)")
        #expect(await folder.anchors(at: DocumentCatalogue.time).revocationListCount == 0)
        // A forged authority is ignored with a warning.
        var forged = try Self.catalogue.certificate("csca-1-rsa").bytes
        forged[forged.count - 1] ^= 1
        try Data(forged).write(to: URL(filePath: "\(path)/forged.cer"))
        #expect(await folder.anchors(at: DocumentCatalogue.time).count == chosen.anchors.count)
        #expect(await folder.summary(at: DocumentCatalogue.time).warnings.count == 1)
    }

    @Test("a missing folder trusts nobody")
    func missing() async {
        let folder = DocumentAnchorFolder("/nonexistent/csca", warn: { _ in })
        #expect(await folder.anchors(at: DocumentCatalogue.time).count == 0)
        #expect(await folder.summary(at: DocumentCatalogue.time) == DocumentAnchorSummary())
    }

    @Test(
        "days of seconds since 1970",
        arguments: [
            (0, "1970-01-01"), (-1, "1969-12-31"), (951_782_400, "2000-02-29"), (1_795_608_000, "2026-11-25"),
            (4_102_444_799, "2099-12-31"), (4_107_542_400, "2100-03-01"),
        ]
    )
    func days(seconds: Int, day: String) { #expect(DocumentTime.text(seconds) == day) }
}
