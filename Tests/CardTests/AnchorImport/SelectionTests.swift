// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import Glibc
import Host
import TestSupport
import Testing
import Text

@testable import CountryAuthorities

/// Which certificates become trust anchors, and how they are written.
@Suite(.timeLimit(.minutes(5))) struct SelectionTests {
    private static func certificate(_ name: String) throws -> CVCertificate {
        try CVCertificate(TestPKI.file("\(name).cvcert"))
    }

    private static func select(
        _ certificates: [CVCertificate],
        known: [String],
        use: AuthorityUse = .productive,
        present: TrustAnchors = TrustAnchors()
    ) throws -> AnchorSelection {
        let found = certificates.enumerated().map { AnchorSources.Found(certificate: $1, place: "place \($0)") }
        let fingerprints = try known.map { AnchorSelection.fingerprint(of: try certificate($0)) }
        let known = Dictionary(fingerprints.map { ($0, use) }, uniquingKeysWith: { first, _ in first })
        return AnchorSelection(found, known: known, present: present)
    }

    private static func verdicts(_ selection: AnchorSelection) -> [String: AnchorSelection.Verdict] {
        Dictionary(
            selection.decisions.map { ("\($0.certificate.issuerName)_\($0.certificate.holderName)", $0.verdict) },
            uniquingKeysWith: { first, _ in first }
        )
    }

    private static let (first, second) = ("DETESTeIDBG00001", "DETESTeIDBG00002")

    @Test("a known root is taken, and what it has signed along the chain, in any order", arguments: [false, true])
    func chain(isReversed: Bool) throws {
        let names = ["cvca-next", "link", "cvca"]
        let certificates = try (isReversed ? names.reversed() : names).map(Self.certificate)
        let selection = try Self.select(certificates, known: ["cvca"], use: .test)
        #expect(
            Self.verdicts(selection) == [
                "\(Self.first)_\(Self.first)": .taken(.test, .fingerprint),
                "\(Self.first)_\(Self.second)": .taken(.test, .signed(by: Self.first)),
                // The new key has signed itself; the link makes it trusted.
                "\(Self.second)_\(Self.second)": .taken(.test, .linked(from: Self.first)),
            ]
        )
        #expect(try selection.taken.map(\.certificate) == ["cvca", "link", "cvca-next"].map(Self.certificate))
    }

    @Test("an unknown root, an unconnected link and a forged link are not imported, with the reason")
    func left() throws {
        let certificates = try ["cvca", "link", "dv"].map(Self.certificate)
        #expect(
            try Self.verdicts(Self.select(certificates, known: [])) == [
                "\(Self.first)_\(Self.first)": .left("it is a root with an unknown fingerprint"),
                "\(Self.first)_\(Self.second)": .left("it is signed by \(Self.first), which is not trusted"),
                "\(Self.first)_DEDVBADGED00001": .left(
                    "it is not a certificate of an authority for authentication terminals"
                ),
            ]
        )
        var bytes = try TestPKI.file("link.cvcert")
        bytes[bytes.count - 1] ^= 1
        let forged = try CVCertificate(bytes)
        let selection = try Self.select([Self.certificate("cvca"), forged], known: ["cvca"])
        #expect(
            Self.verdicts(selection)["\(Self.first)_\(Self.second)"]
                == .left("it has a wrong signature of \(Self.first)")
        )
    }

    @Test("a root that has only the name of a known root is not imported")
    func impostor() throws {
        let impostor = try CertificateRecipe.documentVerifier.changed { recipe in
            (recipe.holder, recipe.signer, recipe.subject) = (Self.first, "terminal", "terminal")
            recipe.chat = CHAT(.cvca, AccessRights(rawValue: 0x3F_FFFF_FFFF))
            recipe.writesParameters = true
        }.certificate()
        #expect(impostor.isRoot && impostor.isSigned(by: impostor, inheriting: nil))
        let selection = try Self.select([impostor, Self.certificate("cvca")], known: ["cvca"])
        #expect(
            selection.decisions.first { $0.certificate == impostor }?.verdict
                == .left("it has a wrong signature of \(Self.first)")
        )
    }

    @Test("a link that the trusted key of a link has not signed is left, and a document verifier is never taken")
    func roles() throws {
        let selection = try Self.select([Self.certificate("dv"), Self.certificate("dv-next")], known: ["dv"])
        #expect(selection.taken.isEmpty)
    }

    @Test("certificates in the folder are kept, and their keys are trusted")
    func present() throws {
        let present = TrustAnchors(productive: [try Self.certificate("cvca")])
        let selection = try Self.select(
            [Self.certificate("cvca"), Self.certificate("link")],
            known: [],
            present: present
        )
        #expect(
            Self.verdicts(selection) == [
                "\(Self.first)_\(Self.first)": .present(.productive),
                "\(Self.first)_\(Self.second)": .taken(.productive, .signed(by: Self.first)),
            ]
        )
        // A link of the folder leads from its root to the new certificate.
        let both = TrustAnchors(
            productive: [try Self.certificate("cvca")],
            links: [try Self.certificate("link")]
        )
        let next = try Self.select([Self.certificate("cvca-next")], known: [], present: both)
        #expect(next.taken.count == 1 && next.decisions.count == 1)
        let again = try Self.select([Self.certificate("link")], known: ["link"], present: both)
        #expect(again.decisions.map(\.verdict) == [.present(.productive)])
    }

    // MARK: The folder

    @Test("written certificates are read as trust anchors, and everybody may read them")
    func written() async {
        // The umask is that of the whole process, so the test has a process of its own.
        await #expect(processExitsWith: .success) {
            let temporary = try TemporaryFolder()
            let folder = temporary.path + "/new/anchors"
            umask(0o077)
            let (first, second) = (SelectionTests.first, SelectionTests.second)
            let writer = AnchorWriter(folder: folder)
            try writer.write([
                (SelectionTests.certificate("cvca"), .productive), (SelectionTests.certificate("link"), .productive),
                (SelectionTests.certificate("cvca-next"), .test),
            ])
            let anchors = TrustAnchors(folder: folder)
            #expect(try anchors.productive == [SelectionTests.certificate("cvca")])
            #expect(try anchors.links == [SelectionTests.certificate("link")])
            #expect(try anchors.test == [SelectionTests.certificate("cvca-next")])
            #expect(anchors.warnings.isEmpty)
            for (name, mode) in [
                ("", 0o755), ("/test", 0o755), ("/\(first).cvcert", 0o644), ("/\(first)_\(second).cvcert", 0o644),
            ] as [(String, mode_t)] {
                var status = stat()
                #expect(stat(folder + name, &status) == 0 && status.st_mode & 0o777 == mode, "\(name)")
            }
        }
    }

    @Test("another certificate with the same names does not replace the first")
    func sameNames() throws {
        let folder = try TemporaryFolder()
        let other = try CertificateRecipe.documentVerifier.changed { recipe in
            (recipe.holder, recipe.subject) = (Self.first, "cvca")
            recipe.chat = CHAT(.cvca, AccessRights(rawValue: 1))
            recipe.writesParameters = true
        }.certificate()
        let writer = AnchorWriter(folder: folder.path)
        try writer.write([(Self.certificate("cvca"), .productive)])
        try writer.write([(other, .productive)])
        #expect(Set(TrustAnchors(folder: folder.path).productive.map(\.encoded)).count == 2)
    }

    @Test("a folder that cannot be written is an error, and no file is left behind")
    func notWritten() throws {
        let folder = try TemporaryFolder()
        try folder.write("test", [])
        let fault = #expect(throws: SystemError.self) {
            try AnchorWriter(folder: folder.path).write([
                (Self.certificate("cvca"), .productive), (Self.certificate("cvca-next"), .test),
            ])
        }
        #expect(fault?.code == ENOTDIR)
        #expect(TrustAnchors(folder: folder.path).productive.isEmpty)
        #expect(throws: SystemError.self) {
            try AnchorWriter(folder: "/proc/nowhere").write([(Self.certificate("cvca"), .productive)])
        }
    }

    @Test("a changed folder is read again, an unchanged one is not")
    func watched() throws {
        let temporary = try TemporaryFolder()
        let warnings = Lines()
        let folder = TrustAnchorFolder(temporary.path + "/anchors", mayBeMissing: true, warn: warnings.add)
        #expect(folder.current() == TrustAnchors())
        try AnchorWriter(folder: folder.path).write([(Self.certificate("cvca"), .productive)])
        #expect(try folder.current().productive == [Self.certificate("cvca")])
        try temporary.write("anchors/broken.cvcert", [1])
        #expect(folder.current().productive.count == 1 && warnings.count == 1)
        #expect(folder.current().productive.count == 1 && warnings.count == 1)
        unlink("\(folder.path)/\(Self.first).cvcert")
        #expect(folder.current().productive.isEmpty)
        _ = TrustAnchorFolder(temporary.path + "/none", mayBeMissing: false, warn: warnings.add).current()
        #expect(warnings.count == 3)
    }

    @Test("the summary names the newest connected authority, with what was learnt")
    func summary() throws {
        let root = try Self.certificate("cvca")
        let link = try Self.certificate("link")
        #expect(AuthoritySummary(TrustAnchors(), learnt: [link]).newest == nil)
        #expect(AuthoritySummary(TrustAnchors(productive: [root]), learnt: []).newest?.name == Self.first)
        let learnt = AuthoritySummary(TrustAnchors(test: [root]), learnt: [link])
        #expect(learnt.learnt == 1 && learnt.newest?.use == .test)
        #expect(learnt.newest?.lastDay == max(root.expirationDate, link.expirationDate))
    }

    @Test(
        "the advice names what is valid on the day, and otherwise who may have the next one",
        arguments: [
            ("DECVCAeID00106", .productive, 2026, 11, 27, "have DECVCAeID00107, valid until 2026-11-27: sudo badgectl"),
            (
                "DECVCAeID00107", .productive, 2026, 11, 28,
                "install the newest AusweisApp (https://www.ausweisapp.bund.de/download), then sudo badgectl"
            ),
            (
                nil, .productive, 2026, 11, 28,
                "(https://www.ausweisapp.bund.de/download), then sudo badgectl anchors import"
            ),
            (
                nil, .productive, 2026, 11, 25,
                "AusweisApp 2.5 and later (https://www.ausweisapp.bund.de/download) have DECV"
            ),
            (
                "DETESTeID00008", .test, 2026, 11, 25,
                "(https://www.ausweisapp.bund.de/download) have DECVCAeIDCTL0405, valid until 2027-03"
            ),
            (
                "DETESTeID00008", .test, 2027, 4, 1,
                "or log in at a service that sends the link to the next certificate"
            ),
            ("DETESTeIDBG00001", .test, 2026, 11, 25, "import a newer certificate of this authority: sudo badgectl"),
        ] as [(String?, AuthorityUse, Int, Int, Int, String)]
    )
    func advice(holder: String?, use: AuthorityUse, year: Int, month: Int, day: Int, words: String) throws {
        let date = try #require(CVDate(year: year, month: month, day: day))
        let advice = KnownAuthority.advice(after: holder, use, on: date)
        #expect(advice.contains(words))
        // A link needs a certificate from which it leads.
        #expect(holder != nil || !advice.contains("link"))
    }

    @Test("the known fingerprints are distinct, and each chain begins at a root")
    func known() {
        let known = KnownAuthority.all
        #expect(Set(known.map(\.fingerprint)).count == known.count)
        #expect(known.allSatisfy { $0.fingerprint.utf8.count == 64 })
        for (index, authority) in known.enumerated() where authority.issuer != authority.holder {
            #expect(known[..<index].contains { $0.holder == authority.issuer && $0.use == authority.use })
        }
    }
}
