// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import Document
import Foundation
import MobileDocument
import TestSupport
import Testing
import Text

/// Whom a site trusts for mobile documents: what an import takes, and what the folder gives afterwards.
@Suite("Authorities of mobile documents", .timeLimit(.minutes(5)))
struct MdocAnchorTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let json: JSON

        var testDescription: String { json["name"]?.string ?? "" }
        var time: Int { json["time"]?.int ?? 0 }
        var isTaken: Bool { json["expect"]?.string == "taken" }
    }

    private static let file = try? vectorFile("mdoc/authority-lists.json")
    static let cases = (file?["cases"]?.array ?? []).map { Case(json: $0) }
    private static let mDL = "org.iso.18013.5.1.mDL"
    private static let pid = "eu.europa.ec.eudi.pid.1"

    private static func bytes(_ json: JSON?) throws -> [UInt8] {
        try #require(json?.string.flatMap { Base64.standard.decode($0) })
    }

    /// The certificates of UT and XX.
    private static func authorities() throws -> [DocumentCertificate] {
        try (file?["authorities"]?.array ?? []).map { try DocumentCertificate(try bytes($0)) }
    }

    private static func imported(
        _ files: [[UInt8]],
        root: MdocAnchorImport.Root? = nil,
        docType: String? = nil,
        at time: Int
    ) -> MdocAnchorImport {
        var chosen = MdocAnchorImport(present: DocumentAnchors(), root: root, docType: docType, at: time)
        for (index, file) in files.enumerated() { chosen.add("file\(index)", file) }
        chosen.documents.decide()
        chosen.documents.accept(chosen.documents.questions)
        chosen.documents.finish()
        return chosen
    }

    @Test("only a list that the named provider has signed brings authorities, each for its types", arguments: cases)
    func lists(test: Case) async throws {
        let list = try Self.bytes(test.json["list"])
        let root = try DocumentCertificate(try Self.bytes(test.json["root"]))
        let chosen = Self.imported([list], root: .certificate(root), at: test.time)
        #expect(chosen.files.isEmpty != test.isTaken, "\(chosen.complaints)")
        #expect(chosen.complaints.isEmpty == test.isTaken)
        #expect(Self.imported([list], at: test.time).files.isEmpty, "without a root no list counts")
        guard test.isTaken else { return }
        let temporary = try TemporaryFolder()
        try AnchorWriter(folder: temporary.path + "/mdoc").write(chosen.files)
        let folder = MdocAnchorFolder(temporary.path + "/mdoc", warn: { _ in })
        let anchors = await folder.authorities(at: test.time).anchors
        let utopia = try #require(try Self.authorities().first)
        #expect(anchors.docTypes(of: utopia) == [Self.mDL])
        #expect(anchors.count >= 1)
        let summary = await folder.summary(at: test.time)
        #expect(summary.warnings == [] && summary.docTypes.contains(Self.mDL))
    }

    @Test(
        "a list whose end cannot be read is malformed",
        arguments: [
            (.tag(0, "2099-01-01T00:00:00Z"), true), ("2099-01-01T00:00:00Z", false), (.tag(1004, "2099-01-01"), false),
            (.null, false), (4_070_908_800, false), (.tag(0, "2099-02-30T00:00:00Z"), false),
        ] as [(CBORValue, Bool)]
    )
    func ends(nextUpdate: CBORValue, isRead: Bool) throws {
        let test = try #require(Self.cases.first { $0.testDescription == "good" })
        let parts = try #require(try CBOR(try Self.bytes(test.json["list"])).untagged(18)?.array)
        let members = try #require(try parts[2].decoded().map)
        let kept = members.filter { !$0.key.isText("nextUpdate") }.map { key, value in
            (CBORValue.encoded(key.encoded), CBORValue.encoded(value.encoded))
        }
        let payload = CBORValue.map(kept + [("nextUpdate", nextUpdate)]).encoding
        let list: CBORValue = [
            .encoded(parts[0].encoded), .encoded(parts[1].encoded), .bytes(payload), .encoded(parts[3].encoded),
        ]
        #expect(((try? MdocAuthorityList(list.encoding)) != nil) == isRead)
    }

    @Test("the root may be named by the SHA-256 of a certificate in the list")
    func fingerprint() throws {
        let test = try #require(Self.cases.first { $0.testDescription == "good" })
        let list = try Self.bytes(test.json["list"])
        let root = try DocumentCertificate(try Self.bytes(test.json["root"]))
        #expect(!Self.imported([list], root: .fingerprint(root.fingerprint), at: test.time).files.isEmpty)
        let other = [UInt8](repeating: 0, count: 32)
        #expect(Self.imported([list], root: .fingerprint(other), at: test.time).files.isEmpty)
    }

    @Test("a certificate counts for all documents, or for the type that the administrator names")
    func types() async throws {
        let authorities = try Self.authorities()
        let time = try #require(Self.cases.first).time
        for docType in [nil, Self.pid] {
            let chosen = Self.imported(authorities.map(\.bytes), docType: docType, at: time)
            let temporary = try TemporaryFolder()
            try AnchorWriter(folder: temporary.path).write(chosen.files)
            let anchors = await MdocAnchorFolder(temporary.path, warn: { _ in }).authorities(at: time).anchors
            #expect(anchors.count == 2)
            #expect(authorities.allSatisfy { anchors.docTypes(of: $0) == docType.map { [$0] } })
            for asked in [Self.mDL, Self.pid] {
                var mine = anchors
                mine.docType = asked
                let isTrusted = docType == nil || docType == asked
                #expect(mine.isTrusted(authorities[0], at: time) == isTrusted, "\(asked)")
            }
        }
    }

    @Test("an authority counts for the types of the one that vouches for it", arguments: [nil, mDL, pid])
    func nextKey(docType: String?) throws {
        let catalogue = DocumentCatalogue.shared
        var present = DocumentAnchors()
        try present.trust(try catalogue.certificate("csca-2-brainpool"), for: [Self.mDL])
        var chosen = MdocAnchorImport(present: present, root: nil, docType: docType, at: DocumentCatalogue.time)
        for name in ["link-2-3.cer", "csca-3-pss.cer"] { chosen.add(name, try #require(catalogue.pki[name])) }
        chosen.documents.decide()
        #expect(chosen.documents.questions.isEmpty)
        chosen.documents.finish()
        let authorities = chosen.files.keys.filter { !$0.hasSuffix(".link.cer") }
        #expect(authorities.count == 1 && authorities.allSatisfy { $0.hasPrefix(Self.mDL + "/") })
        #expect(chosen.complaints == [])
        #expect(chosen.notes.count == (docType == Self.mDL ? 0 : 1), "\(chosen.notes)")
        // Who names a certificate that is trusted already chooses it for these documents, too.
        var again = MdocAnchorImport(present: present, root: nil, docType: docType, at: DocumentCatalogue.time)
        again.add("a", try catalogue.certificate("csca-2-brainpool").bytes)
        again.documents.decide()
        #expect(again.documents.questions.isEmpty && again.notes == [])
        #expect(again.files.keys.first?.hasPrefix(docType.map { $0 + "/" } ?? "UT-") == true)
    }

    @Test("a master list in the folder of a type brings authorities for this type")
    func listOfType() throws {
        let names = ["csca-1-rsa.cer", "csca-2-brainpool.cer", "csca-3-pss.cer"]
        let files = try (names + ["masterlist.ml"]).map { ($0, try #require(DocumentCatalogue.shared.pki[$0])) }
        var anchors = DocumentAnchors()
        _ = anchors.addFiles(files.map { (name: $0.0, content: $0.1) }, for: [Self.mDL], at: DocumentCatalogue.time)
        #expect(anchors.count > names.count)
        #expect(anchors.all.allSatisfy { anchors.docTypes(of: $0) == [Self.mDL] })
        // The same list for another type widens this.
        _ = anchors.addFiles(files.map { (name: $0.0, content: $0.1) }, for: [Self.pid], at: DocumentCatalogue.time)
        #expect(anchors.all.allSatisfy { anchors.docTypes(of: $0) == [Self.mDL, Self.pid] })
    }

    @Test("an authority that two folders have is trusted for both types, and for all if the folder itself has it")
    func union() throws {
        let authority = try #require(try Self.authorities().first)
        var anchors = DocumentAnchors()
        try anchors.trust(authority, for: [Self.mDL])
        try anchors.trust(authority, for: [Self.pid])
        #expect(anchors.docTypes(of: authority) == [Self.mDL, Self.pid])
        try anchors.trust(authority)
        #expect(anchors.docTypes(of: authority) == nil)
        try anchors.trust(authority, for: [Self.mDL])
        #expect(anchors.docTypes(of: authority) == nil)
    }

    @Test("status lists lie beside the certificates, files that are nothing are named, and changes are seen")
    func folder() async throws {
        let verdicts = try vectorFile("mdoc/verdicts.json")
        let valid = try #require(verdicts["cases"]?.array?.first { $0["name"]?.string == "status-valid" })
        let index = try #require(valid["lists"]?.array?.first?.int)
        let list = try Self.bytes(verdicts["blobs"]?.array?[index])
        let time = try #require(valid["time"]?.int)
        let temporary = try TemporaryFolder()
        let folder = MdocAnchorFolder(temporary.path, warn: { _ in })
        #expect(await folder.summary(at: time) == MdocAnchorSummary())
        let chosen = Self.imported([list] + (try Self.authorities().map(\.bytes)), at: time)
        try AnchorWriter(folder: temporary.path).write(chosen.files)
        try AnchorWriter(folder: temporary.path).write(["broken.cwt": [0xD2, 0x84], "note.txt": Array("hello".utf8)])
        let summary = await folder.summary(at: time)
        #expect(summary.authorities == 2 && summary.statusLists == 1 && summary.countries == ["UT", "XX"])
        #expect(summary.warnings.count == 2, "\(summary.warnings)")
        #expect(await folder.authorities(at: time).listCount == 1)
        // The authority of a list may be one that only documents name.
        let other = try TemporaryFolder()
        let forged: [UInt8] = Array(list.dropLast()) + [~(list.last ?? 0)]
        try AnchorWriter(folder: other.path).write(["strange.cwt": list, "forged.cwt": forged])
        let warnings = MdocAnchorFolder(other.path, warn: { _ in }).warnings(at: time)
        #expect(warnings == ["\(other.path)/forged.cwt: \(DocumentAnchors.wrongSignature)"])
        #expect(try MdocStatusList(list).check(by: DocumentAnchors(), at: time)?.isOfUnknownAuthority == true)
        #expect(try MdocStatusList(forged).check(by: DocumentAnchors(), at: time) == nil)
    }

    @Test(
        "names of folders that are no document types do not count",
        arguments: ["x", ".hidden", "a/b", "a b.c", "ä.b"]
    )
    func names(name: String) { #expect(!MdocAnchorFolder.isDocType(name)) }
}
