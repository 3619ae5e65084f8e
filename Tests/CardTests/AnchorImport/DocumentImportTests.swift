// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import Crypto
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

    @Test("an authority that an imported list has brought imports no list without a question, now and later")
    func nested() async throws {
        let files = try DocumentCatalogue.chains.document("list-of-three").expect["trust"]?.members ?? []
        let contents = files.compactMap { $0.value.string.flatMap { DocumentCatalogue.chains.blobs[$0] } }
        #expect(contents.count == 4)
        // The authority, its list, and lists of the authorities that these bring.
        let temporary = try TemporaryFolder()
        let path = temporary.path + "/csca"
        var folder = DocumentAnchorFolder(path, warn: { _ in })
        for (count, isOneByOne) in [(contents.count, false), (2, true), (3, true), (4, true)] {
            let present = await folder.anchors(at: DocumentCatalogue.time)
            var chosen = DocumentAnchorImport(present: present, at: DocumentCatalogue.time)
            for (index, content) in contents.prefix(count).enumerated() { chosen.add("\(index).ml", content) }
            chosen.decide()
            // The administrator chooses the first authority alone.
            chosen.accept(chosen.questions.filter { $0.place == "0.ml" })
            #expect(chosen.questions.map(\.place) == (isOneByOne ? 2..<count : 2..<4).map { "\($0).ml" })
            chosen.finish()
            #expect(chosen.anchors.countries == ["FR", "UT"])
            #expect(chosen.files.keys.filter { $0.hasSuffix(".listed.cer") }.map { $0.prefix(2) } == ["FR"])
            try AnchorWriter(folder: path).write(chosen.files)
            folder = DocumentAnchorFolder(path, warn: { _ in })
        }
        let last = await folder.anchors(at: DocumentCatalogue.time)
        #expect(last.all.filter(last.isChosen).map(\.subject.country) == ["UT"])
        // The answer to the question about a list chooses its authority.
        var later = DocumentAnchorImport(present: last, at: DocumentCatalogue.time)
        later.add("2.ml", contents[2])
        later.decide()
        later.accept(later.questions)
        #expect(later.anchors.countries == ["FR", "GR", "UT"])
        #expect(Set(later.anchors.all.filter(later.anchors.isChosen).map(\.subject.country)) == ["FR", "UT"])
        try AnchorWriter(folder: path).write(later.files)
        let end = await DocumentAnchorFolder(path, warn: { _ in }).anchors(at: DocumentCatalogue.time)
        #expect(Set(end.all.filter(end.isChosen).map(\.subject.country)) == ["FR", "UT"])
    }

    @Test("a list that cannot be used is kept, told, and hides no revocation")
    func unusable() async throws {
        let members = try DocumentCatalogue.chains.document("cr-clean-old+revoked-new-crit").expect["trust"]?.members
        let contents = (members ?? []).compactMap { $0.value.string.flatMap { DocumentCatalogue.chains.blobs[$0] } }
        var chosen = DocumentAnchorImport(present: DocumentAnchors(), at: DocumentCatalogue.time)
        for (index, content) in contents.enumerated() { chosen.add("\(index)", content) }
        chosen.decide()
        chosen.accept(chosen.questions)
        chosen.finish()
        #expect(chosen.files.keys.count { $0.hasSuffix(".crl") } == 2)
        #expect(chosen.complaints == [])
        #expect(chosen.notes == ["2: \(DocumentAnchors.unusable): it has a critical rule that badged does not know"])
        let temporary = try TemporaryFolder()
        try AnchorWriter(folder: temporary.path + "/csca").write(chosen.files)
        let summary = await DocumentAnchorFolder(temporary.path + "/csca", warn: { _ in })
            .summary(at: DocumentCatalogue.time)
        #expect(summary.warnings.count == 1)
        #expect(summary.warnings.first?.hasSuffix("\(DocumentAnchors.unusable)") == true)
    }

    @Test("a list behind a link to nothing, and one whose name is not UTF-8, are told as lists that cannot be used")
    func unreachable() async throws {
        let temporary = try TemporaryFolder()
        let path = temporary.path
        #expect(symlink("/nowhere", path + "/UT-1.crl") == 0)
        let name = Array("\(path)/".utf8CString.dropLast()) + [-1] + Array(".crl".utf8CString)
        let descriptor = open(name, O_CREAT | O_WRONLY, 0o644)
        #expect(close(descriptor) == 0)
        let summary = await DocumentAnchorFolder(path, warn: { _ in }).summary(at: DocumentCatalogue.time)
        #expect(summary.unusableLists.map(\.place).sorted() == ["UT-1.crl", "\u{FFFD}.crl"])
        #expect(summary.newest == nil)
    }

    @Test("a folder with more files than badged reads makes nothing genuine, and says so")
    func tooManyFiles() async throws {
        let temporary = try TemporaryFolder()
        let path = temporary.path
        try temporary.write("a.cer", try #require(Self.catalogue.pki["csca-2-brainpool.cer"]))
        for number in 1..<AnchorFiles.maximumCount { try temporary.write("b\(number).cer", []) }
        let folder = DocumentAnchorFolder(path, warn: { _ in })
        let signer = SignedData.Claim(certificate: try Self.catalogue.certificate("ds-p256"))
        func check() async -> AuthorityCheck {
            let anchors = await folder.anchors(at: DocumentCatalogue.time)
            return anchors.judge(signer, as: .securityObject, countries: ["UT"], at: DocumentCatalogue.time)
        }
        #expect(await check().result == .passed)
        #expect(AnchorFiles.hasRoom(for: ["a.cer"], in: path) && !AnchorFiles.hasRoom(for: ["c.cer"], in: path))
        try temporary.write("c.cer", [])
        #expect(await check().reason == .unusableList)
        let summary = await folder.summary(at: DocumentCatalogue.time)
        #expect(summary.unread.map(\.place) == ["."])
        #expect(summary.warnings.contains { $0.includes(" 8192 files") })
    }

    @Test("certificates of signers are left out if there is no room for them")
    func noRoom() throws {
        var chosen = try Self.run(["ds-p256.cer", "link-2-3.cer"], present: ["csca-2-brainpool"])
        #expect(chosen.files.keys.contains { $0.hasSuffix(".signer.cer") })
        chosen.leaveOutSigners()
        #expect(chosen.files.keys.allSatisfy { $0.hasSuffix(".link.cer") } && chosen.files.count == 1)
        #expect(chosen.complaints.count == 1)
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

    /// A file of a case of `trust.json`.
    private static func file(_ name: String, of entry: String) throws -> [UInt8] {
        let trust = DocumentCatalogue.trust
        let blob = try trust.document(entry).expect["trust"]?[name]?.string
        return try #require(blob.flatMap { trust.blobs[$0] })
    }

    @Test("a file with many certificates is one question, and all are taken", arguments: ["pem-many", "p7b"])
    func many(entry: String) throws {
        let name = entry == "p7b" ? "r.p7b" : "all.pem"
        let content = try Self.file(name, of: entry)
        var chosen = DocumentAnchorImport(present: DocumentAnchors(), at: DocumentCatalogue.time)
        chosen.add(name, content)
        chosen.decide()
        let question = try #require(chosen.questions.first)
        #expect(chosen.questions.count == 1)
        #expect(question.authorities == 21)
        #expect(question.countries.count == 21)
        #expect(question.fingerprint == (try DigestAlgorithm.sha256.hash(content)))
        var one = chosen
        let certificate = try DocumentCertificate(try Self.file("root.cer", of: "plain"))
        one.accept(fingerprint: certificate.fingerprint)
        #expect(one.anchors.countries == ["UT"])
        one.finish()
        #expect(one.complaints.count == 20)
        chosen.accept(fingerprint: question.fingerprint)
        chosen.finish()
        #expect(chosen.anchors.count == 21)
        #expect(chosen.files.count == 21)
        #expect(chosen.complaints == [])
    }

    @Test("a link with an unchanged name is taken as what it is, and the folder has no warning about it")
    func unchangedName() async throws {
        var chosen = DocumentAnchorImport(present: DocumentAnchors(), at: DocumentCatalogue.time)
        chosen.add("root.cer", try Self.file("root.cer", of: "list-with-both"))
        chosen.add("a.ml", try Self.file("a.ml", of: "list-with-both"))
        chosen.decide()
        chosen.accept(chosen.questions)
        chosen.finish()
        #expect(chosen.complaints == [])
        #expect(chosen.anchors.count == 2)
        #expect(chosen.anchors.linkCount == 1)
        let temporary = try TemporaryFolder()
        try AnchorWriter(folder: temporary.path + "/csca").write(chosen.files)
        let summary = await DocumentAnchorFolder(temporary.path + "/csca", warn: { _ in })
            .summary(at: DocumentCatalogue.time)
        #expect(summary.warnings == [])
        #expect(summary.authorities == 2)
        #expect(summary.links == 1)
    }

    @Test(
        "what another country, a signer without the right, or a link of another country brings is left with a reason",
        arguments: [
            ("foreign-link", "l.cer", "is not trusted"), ("list-revoked", "a.ml", "its signer is revoked"),
            ("list-certsign", "a.ml", "not for master lists"), ("list-expired", "a.ml", "has expired"),
            ("authority-refused", "r.cer", "not the certificate of an authority"),
            ("crl-no-usage", "c.crl", "its signature is wrong"),
        ]
    )
    func refused(entry: String, name: String, reason: String) throws {
        var chosen = DocumentAnchorImport(present: DocumentAnchors(), at: DocumentCatalogue.time)
        // The list comes before what is known against its signer.
        chosen.add(name, try Self.file(name, of: entry))
        for member in try DocumentCatalogue.trust.document(entry).expect["trust"]?.members ?? []
        where member.key != name {
            let content = try Self.file(member.key, of: entry)
            chosen.add(member.key, content)
        }
        chosen.decide()
        chosen.accept(chosen.questions.filter { $0.place.hasSuffix(".cer") })
        chosen.finish()
        #expect(chosen.complaints.contains { $0.hasPrefix(name) && $0.contains(reason) }, "\(chosen.complaints)")
    }

    @Test(
        "a question says what is known against the signer of a list, and a revoked signer cannot be chosen",
        arguments: [
            ("list-good", nil, true), ("list-expired", "has expired", true), ("list-future", "not valid yet", true),
            ("list-country", "of another country", true), ("list-revoked", nil, false),
            ("list-revoked-under-link", nil, false),
        ] as [(String, String?, Bool)]
    )
    func doubt(entry: String, doubt: String?, isAsked: Bool) throws {
        for isPinned in [false, true] {
            var chosen = DocumentAnchorImport(present: DocumentAnchors(), at: DocumentCatalogue.time)
            let list = try Self.file("a.ml", of: entry)
            for member in try DocumentCatalogue.trust.document(entry).expect["trust"]?.members ?? []
            where member.key != "a.ml" {
                chosen.add(member.key, try Self.file(member.key, of: entry))
            }
            chosen.decide()
            chosen.accept(chosen.questions)
            let before = chosen.anchors.count
            chosen.add("a.ml", list)
            chosen.decide()
            // A list that is signed well is taken without a question.
            guard entry != "list-good" else {
                #expect(chosen.questions.isEmpty && chosen.anchors.count > before)
                continue
            }
            #expect(chosen.questions.count == (isAsked ? 1 : 0))
            if let doubt { #expect(chosen.questions.first?.doubt?.contains(doubt) == true, "\(chosen.questions)") }
            guard case .masterList(let signed) = try DocumentAnchorFile(list) else { continue }
            // An authority that nobody knows is what the question is about, and no doubt.
            #expect(DocumentAnchors().doubt(about: signed.proof, at: DocumentCatalogue.time) == nil)
            if isPinned {
                chosen.accept(fingerprint: signed.proof.signer.fingerprint)
            } else {
                chosen.accept(chosen.questions)
            }
            #expect((chosen.anchors.count > before) == isAsked)
            var anchors = chosen.anchors
            let fingerprint = signed.proof.signer.fingerprint
            if !isAsked {
                #expect(throws: Malformed.self) {
                    try anchors.add(signed, at: DocumentCatalogue.time, fingerprint: fingerprint)
                }
            }
            chosen.finish()
            let isTold = chosen.complaints.contains { $0.contains("a.ml") && $0.contains("its signer is revoked") }
            #expect(isTold == !isAsked, "\(chosen.complaints)")
        }
    }

    @Test("older exports, PEM of lists and base64 are read", arguments: ["ldif-old", "pem-cms", "base64", "ldif-link"])
    func forms(entry: String) throws {
        var anchors = DocumentAnchors()
        var chosen: [(String, [UInt8])] = []
        for member in try DocumentCatalogue.trust.document(entry).expect["trust"]?.members ?? [] {
            let content = try Self.file(member.key, of: entry)
            if member.key.hasSuffix(".cer") { try anchors.trust(try DocumentCertificate(content)) }
            chosen.append((member.key, content))
        }
        var result = DocumentAnchorImport(present: anchors, at: DocumentCatalogue.time)
        for (name, content) in chosen { result.add(name, content) }
        result.decide()
        result.accept(result.questions)
        result.finish()
        #expect(result.complaints == [])
        #expect(result.files.keys.contains { $0.hasPrefix("UT-") })
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

    @Test("a list that was read while the clock was wrong is read again, and so is one after an hour")
    func clock() async throws {
        let temporary = try TemporaryFolder()
        let authorities = ["csca-1-rsa.cer", "csca-2-brainpool.cer", "csca-3-pss.cer", "csca-4-same-name.cer"]
        for name in authorities + ["defects.bin"] {
            _ = try temporary.write(name, try #require(Self.catalogue.pki[name]))
        }
        let folder = DocumentAnchorFolder(temporary.path, warn: { _ in })
        let signer = try Self.catalogue.certificate("ds-defect")
        func defects(_ time: Int) async -> Int { await folder.anchors(at: time).defects(of: signer).count }
        let time = DocumentCatalogue.time
        #expect(await defects(0) == 0)
        #expect(await folder.summary(at: 0).warnings.count == 1)
        #expect(await folder.summary(at: time).warnings == [])
        #expect(await defects(time) == 1)
        // The signer has expired.
        #expect(await defects(time + 100 * 366 * 86_400) == 0)
        #expect(await defects(time) == 1)
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
