// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import ISO7816
import TestSupport
import Testing
import Text

@Suite("Authorities of documents", .timeLimit(.minutes(5)))
struct DocumentTrustTests {
    let catalogue = DocumentCatalogue.shared
    let time = DocumentCatalogue.time

    private func file(_ name: String) throws -> [UInt8] { try #require(catalogue.pki[name]) }

    /// The authority that has signed a certificate of the catalogue.
    private func issuer(of name: String, _ anchors: DocumentAnchors) throws -> DocumentCertificate? {
        anchors.chain(of: try catalogue.certificate(name), at: nil)?.steps.first?.issuer
    }

    /// Why the signer of an EF.SOD of the country is not trusted.
    private func reason(
        of certificate: DocumentCertificate,
        _ anchors: DocumentAnchors
    ) throws -> AuthorityCheck.Reason? {
        let claim = SignedData.Claim(certificate: certificate)
        return anchors.judge(claim, as: .securityObject, countries: ["UT"], at: time).reason
    }

    static let authorities = ["csca-0-sha1", "csca-1-rsa", "csca-2-brainpool", "csca-3-pss", "csca-4-same-name"]

    @Test("every authority is one, and no other certificate is")
    func trust() throws {
        for name in catalogue.pki.keys where name.hasSuffix(".cer") {
            let certificate = try DocumentCertificate(try file(name))
            var anchors = DocumentAnchors()
            if name.hasPrefix("csca") {
                try anchors.trust(certificate)
                #expect(anchors.count == 1)
            } else {
                #expect(throws: DocumentAnchors.notAnAuthority, "\(name)") { try anchors.trust(certificate) }
            }
        }
    }

    private static let numbered = try? vectorFile("mdoc/numbered-lists.json")

    @Test(
        "of several revocation lists each one revokes, and the one with the highest number is the newest",
        arguments: (numbered?["folders"]?.array ?? []).compactMap { $0["name"]?.string }
    )
    func numbers(name: String) throws {
        func bytes(_ json: JSON?) throws -> [UInt8] {
            let text = try #require(json?.string)
            return try #require(Base64.standard.decode(text))
        }
        let vectors = try #require(Self.numbered)
        let test = try #require(vectors["folders"]?.array?.first { $0["name"]?.string == name })
        let lists = try (test["lists"]?.array ?? []).map(bytes)
        let signer = SignedData.Claim(certificate: try DocumentCertificate(try bytes(vectors["signer"])))
        let time = try #require(vectors["time"]?.int)
        for lists in [lists, lists.reversed()] {
            var anchors = DocumentAnchors()
            let authorities = try (vectors["anchors"]?.array ?? []).map(bytes)
            let files = (authorities + lists).enumerated().map { (name: "\($0.offset)", content: $0.element) }
            #expect(anchors.addFiles(files, at: time).warnings == [])
            let check = anchors.judge(signer, as: .securityObject, countries: ["UT"], at: time)
            #expect(check.revocation.rawValue == test["revocation"]?.string)
            #expect(check.result == (check.revocation == .revoked ? .failed : .passed))
        }
    }

    @Test("each signer is certified by exactly the authority that made it")
    func issuers() throws {
        let anchors = try catalogue.anchors()
        let expected = [
            "ds-rsa": "csca-1-rsa", "ds-pss": "csca-3-pss", "ds-p256": "csca-2-brainpool",
            "ds-p256-explicit": "csca-2-brainpool", "ds-bp224-explicit": "csca-2-brainpool",
            "ds-sha1": "csca-0-sha1", "ds-sha1-valid": "csca-1-rsa", "ds-same-name": "csca-4-same-name",
            "ds-p521": "csca-2-brainpool", "ds-bp512": "csca-2-brainpool",
        ]
        for (signer, authority) in expected {
            #expect(try issuer(of: signer, anchors) == (try catalogue.certificate(authority)))
        }
        #expect(try reason(of: try catalogue.certificate("ds-unknown"), anchors) == .unknownAuthority)
        #expect(try reason(of: try catalogue.certificate("ds-forged"), anchors) == .unknownAuthority)
    }

    @Test("a signature of the right name and key that is wrong is told apart from an unknown authority")
    func wrongSignature() throws {
        var bytes = try file("ds-p256.cer")
        bytes[bytes.count - 1] ^= 1
        let anchors = try catalogue.anchors()
        #expect(try reason(of: try DocumentCertificate(bytes), anchors) == .wrongCertificateSignature)
    }

    @Test(
        "a certificate with a critical extension that is not known signs nothing",
        arguments: ["ds-p256", "csca-1-rsa"]
    )
    func unknownRules(_ name: String) throws {
        var bytes = try catalogue.certificate(name).bytes
        // The key usage, which is critical, becomes an extension that nobody knows.
        let usage = hex("0603551D0F0101FF")
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: usage) })
        bytes[start + 4] = 0x7F
        let certificate = try DocumentCertificate(bytes)
        #expect(certificate.hasUnknownRule)
        #expect(SignedObject.allCases.allSatisfy { !$0.rule.permits(certificate) })
    }

    @Test("a link leads from an old authority to a new one, and is no anchor itself")
    func links() throws {
        var anchors = DocumentAnchors()
        try anchors.addLink(try catalogue.certificate("link-2-3"))
        #expect(try issuer(of: "ds-pss", anchors) == nil)
        try anchors.trust(try catalogue.certificate("csca-2-brainpool"))
        #expect(try issuer(of: "ds-pss", anchors) == (try catalogue.certificate("link-2-3")))
        // Two links, one after the other.
        var old = DocumentAnchors()
        try old.trust(try catalogue.certificate("csca-1-rsa"))
        try old.addLink(try catalogue.certificate("link-2-3"))
        #expect(try issuer(of: "ds-pss", old) == nil)
        try old.addLink(try catalogue.certificate("link-1-2"))
        #expect(try issuer(of: "ds-pss", old) != nil)
    }

    @Test("explicit parameters are compared with the known curves: one changed number is no curve")
    func explicitParameters() throws {
        let certificate = try catalogue.certificate("csca-2-brainpool")
        #expect(throws: Never.self) { try certificate.publicKey }
        // The generator of brainpoolP384r1 begins with these bytes; another generator is how a forger fits a key.
        let generator = hex("1D1C64F068CF45FFA2A63A81B7C13F6B8847A3E77EF14FE3DB7FCAFE0CBD10E8E826E03436D646AA")
        let bytes = certificate.bytes
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: generator) })
        var forged = bytes
        forged[start + 5] ^= 1
        let other = try DocumentCertificate(forged)
        do {
            _ = try other.publicKey
            Issue.record("the generator was not compared")
        } catch {
            #expect(error == .unsupported)
        }
        #expect(other.check(signedBy: other) == .unsupported)
    }

    @Test("a revocation list counts only with the signature of a known authority")
    func revocation() throws {
        var anchors = DocumentAnchors()
        let list = try RevocationList(try file("csca-2.crl"))
        #expect(throws: DocumentAnchors.notTrusted) { try anchors.add(list) }
        try anchors.trust(try catalogue.certificate("csca-2-brainpool"))
        let wrong = try RevocationList(try file("csca-2-wrong-signature.crl"))
        #expect(throws: DocumentAnchors.wrongSignature) { try anchors.add(wrong) }
        let issuer = try catalogue.certificate("csca-2-brainpool")
        let revoked = try catalogue.certificate("ds-revoked")
        let good = try catalogue.certificate("ds-p256")
        #expect(anchors.revocation(of: revoked, issuer: issuer, at: time) == .unknown)
        // A list whose successor is due says nothing about what is not in it.
        try anchors.add(try RevocationList(try file("csca-2-old.crl")))
        #expect(anchors.revocation(of: good, issuer: issuer, at: time) == .unknown)
        try anchors.add(list)
        #expect(list.count == 1)
        #expect(anchors.revocation(of: revoked, issuer: issuer, at: time) == .revoked)
        #expect(anchors.revocation(of: good, issuer: issuer, at: time) == .good)
    }

    @Test("a list that is too long to be used is still a list: who has made it, and when", arguments: [10, 190_000])
    func longList(count: Int) throws {
        let short = try BERTLV(try file("csca-2.crl"))
        var parts = try short.children
        var fields = try parts[0].children
        let place = try #require(fields.lastIndex { $0.tag == 0x30 })
        let entry = BERTLV(0x30, [BERTLV(0x02, [1, 2, 3, 4, 5, 6]), BERTLV(0x17, Array("260101000000Z".utf8))])
        fields[place] = BERTLV(0x30, Array(repeating: entry, count: count))
        parts[0] = BERTLV(0x30, fields)
        let list = try RevocationList(BERTLV(0x30, parts).encoded)
        #expect(list.issuer == (try RevocationList(short.encoded)).issuer)
        #expect((list.scope == .unknown) == (count > 10))
        #expect(list.contains([1, 2, 3, 4, 5, 6]) == (count == 10))
    }

    /// What happens to a file before it comes into the folder.
    enum Damage: Sendable {
        case none, lastByte, isCut, isCutInPEM, isEmptied, isInDirectory

        func apply(_ bytes: [UInt8]) -> [UInt8] {
            let half = Array(bytes.prefix(bytes.count / 2))
            switch self {
            case .none: return bytes
            case .lastByte: return Array(bytes.dropLast()) + bytes.suffix(1).map { $0 ^ 1 }
            case .isCut: return half
            case .isCutInPEM: return Array(PEM.revocationList.encode(half).utf8)
            case .isEmptied: return []
            case .isInDirectory:
                let text = Base64.standard.encode(bytes)
                return Array("dn: cn=x\ncertificateRevocationList;binary:: \(text)\n".utf8)
            }
        }
    }

    @Test(
        "a list that cannot be used and may name the signer makes nothing genuine, and the check says why",
        arguments: [
            ("a.crl", "csca-2-wrong-signature.crl", .none, true), ("a.crl", "csca-2.crl", .isCut, true),
            ("UT-1.crl", "csca-2.crl", .isCut, true), ("EW-1.crl", "csca-2.crl", .isCut, false),
            ("XX-1.crl", "csca-2.crl", .isCut, true), ("a.bin", "csca-2.crl", .isCut, true),
            ("a.bin", "csca-2.crl", .isEmptied, true), ("a.pem", "csca-2.crl", .isCutInPEM, true),
            ("a.ldif", "csca-2-wrong-signature.crl", .isInDirectory, false), ("a.bin", "defects.bin", .lastByte, true),
            ("a.bin", "defects.bin", .isCut, true), ("EW-1.defects", "defects.bin", .isCut, false),
            ("a.cer", "csca-1-rsa.cer", .isCut, false), ("a.bin", "csca-1-rsa.cer", .isCut, false),
            ("a.ml", "masterlist.ml", .isCut, false), ("a.bin", "masterlist.ml", .isCut, false),
        ] as [(String, String, Damage, Bool)]
    )
    func unusableLists(place: String, name: String, damage: Damage, isRefused: Bool) throws {
        let signer = SignedData.Claim(certificate: try catalogue.certificate("ds-p256"))
        let authority = (name: "root.cer", content: try file("csca-2-brainpool.cer"))
        let other = (name: place, content: damage.apply(try file(name)))
        var anchors = DocumentAnchors()
        let summary = anchors.addFiles([authority, other], at: time)
        #expect(summary.warnings.count == 1)
        let check = anchors.judge(signer, as: .securityObject, countries: ["UT"], at: time)
        #expect(check.result == (isRefused ? .notDone : .passed))
        #expect(check.reason == (isRefused ? .unusableList : nil))
        #expect(check.unusableLists == (isRefused ? summary.warnings : []))
        #expect((check.advice != nil) == isRefused)
        #expect(check.revocation == .unknown)
        // A current revocation list takes the place of another one of which it is known that it is one.
        let current = (name: "current.crl", content: try file("csca-2.crl"))
        var more = DocumentAnchors()
        _ = more.addFiles([authority, other, current], at: time)
        let next = more.judge(signer, as: .securityObject, countries: ["UT"], at: time)
        #expect(next.revocation == .good)
        #expect(next.result == (isRefused && damage != .none ? .notDone : .passed))
        // The file is mended.
        _ = anchors.addFiles([authority, (name: place, content: current.content)], at: time)
        #expect(anchors.judge(signer, as: .securityObject, countries: ["UT"], at: time).result == .passed)
    }

    enum Bundle: CaseIterable {
        case whole, isCut, isJoined, lacksDash, wrongFirstLine, lacksFirstLine, lacksLineBetween, hasBytes

        /// A text with this list twice.
        func text(_ list: String) -> String {
            switch self {
            case .whole: list + "a remark\n" + list
            case .isCut: list + list.dropLast(30)
            case .isJoined: String(list.dropLast()) + list
            case .lacksDash: list + list.dropLast(2) + "\n"
            case .wrongFirstLine: list + list.replacing("BEGIN", with: "BEGXN")
            case .lacksFirstLine: list + list.dropFirst(25)
            case .lacksLineBetween: String(list.dropLast(23)) + list
            case .hasBytes: list + "0\u{2}\u{1}\u{1}"
            }
        }
    }

    @Test("a list of a file in PEM that has lost a line is not overlooked", arguments: Bundle.allCases)
    func bundles(_ bundle: Bundle) throws {
        let isWhole = bundle == .whole
        let text = bundle.text(PEM.revocationList.encode(try file("csca-2.crl")))
        var anchors = DocumentAnchors()
        try anchors.trust(try catalogue.certificate("csca-2-brainpool"))
        let summary = anchors.addFiles([(name: "a.pem", content: Array(text.utf8))], at: time)
        #expect(summary.warnings.count == (isWhole ? 0 : 1), "\(summary.warnings)")
        let signer = SignedData.Claim(certificate: try catalogue.certificate("ds-p256"))
        let check = anchors.judge(signer, as: .securityObject, countries: ["UT"], at: time)
        #expect(check.reason == (isWhole ? nil : .unusableList))
    }

    @Test(
        "a certificate and a list that were joined in DER both count, and a cut list is not overlooked",
        arguments: [0, 1, 100, 1_000_000],
        ["", "\n"]
    )
    func joined(cut: Int, tail: String) throws {
        let list = try file("csca-2.crl").dropLast(cut)
        let content = try file("csca-2-brainpool.cer") + list + Array(tail.utf8)
        var anchors = DocumentAnchors()
        let summary = anchors.addFiles([(name: "a.cer", content: content)], at: time)
        #expect(summary.warnings.isEmpty == ((cut == 0 || list.isEmpty) && tail.isEmpty), "\(summary.warnings)")
        let signer = SignedData.Claim(certificate: try catalogue.certificate("ds-p256"))
        let check = anchors.judge(signer, as: .securityObject, countries: ["UT"], at: time)
        #expect(check.reason == (cut == 0 || list.isEmpty ? nil : .unusableList))
        #expect(check.revocation == (cut == 0 ? .good : .unknown))
    }

    @Test("a certificate that has lost a line hides no list")
    func cutCertificate() throws {
        let content = PEM.certificate.encode(try file("csca-1-rsa.cer")).dropLast(30)
        var anchors = DocumentAnchors()
        try anchors.trust(try catalogue.certificate("csca-2-brainpool"))
        let list = PEM.revocationList.encode(try file("csca-2.crl"))
        let summary = anchors.addFiles([(name: "a.pem", content: Array((list + content).utf8))], at: time)
        #expect(summary.warnings.count == 1)
        #expect(anchors.unusableLists == [])
    }

    @Test("a master list is taken from a signer whose authority is trusted")
    func masterList() throws {
        let list = try MasterList(try file("masterlist.ml"))
        #expect(list.certificates.count == 7)
        var strangers = DocumentAnchors()
        #expect(throws: DocumentAnchors.notTrusted) { try strangers.add(list, at: time) }
        var anchors = DocumentAnchors()
        try anchors.trust(try catalogue.certificate("csca-2-brainpool"))
        #expect(try anchors.add(list, at: time) == .init(authorities: 5, links: 2, skipped: 0))
        #expect(anchors.count == 5)
        #expect(anchors.linkCount == 2)
        #expect(anchors.countries == ["UT"])
        // The same list again adds nothing.
        _ = try anchors.add(list, at: time)
        #expect(anchors.count == 5)
        // A fingerprint that the administrator has compared stands for an authority.
        var pinned = DocumentAnchors()
        let fingerprint = list.proof.signer.fingerprint
        #expect(throws: Never.self) { try pinned.add(list, at: time, fingerprint: fingerprint) }
        #expect(throws: DocumentAnchors.notTrusted) {
            try strangers.add(list, at: time, fingerprint: [UInt8](repeating: 0, count: 32))
        }
        // A signer whose certificate is over is not trusted.
        #expect(throws: Malformed("the certificate of its signer has expired")) {
            try anchors.add(list, at: time + 40 * 365 * 86_400)
        }
    }

    @Test("an authority that only a list has brought is trusted, and brings no list")
    func listed() throws {
        var anchors = DocumentAnchors()
        try anchors.trust(try catalogue.certificate("csca-2-brainpool"))
        let list = try MasterList(try file("masterlist.ml"))
        _ = try anchors.add(list, at: time)
        let own = try catalogue.certificate("csca-2-brainpool")
        #expect(anchors.all.filter(anchors.isChosen) == [own])
        // The same certificate, chosen or brought by a list.
        for isChosen in [true, false] {
            var other = DocumentAnchors()
            try other.trust(own, isChosen: isChosen)
            if isChosen {
                #expect(throws: Never.self) { try other.add(list, at: time) }
            } else {
                #expect(throws: DocumentAnchors.notChosen) { try other.add(list, at: time) }
                #expect(other.count == 1)
                // A compared fingerprint is a choice, and chooses the signer's authority.
                _ = try other.add(list, at: time, fingerprint: list.proof.signer.fingerprint)
                #expect(other.all.filter(other.isChosen) == [own])
                #expect(throws: Never.self) { try other.add(list, at: time) }
            }
        }
    }

    @Test(
        "a master list with a fault is refused",
        arguments: [
            ("masterlist-wrong-signature.ml", "the signature of the master list is wrong"),
            ("masterlist-wrong-digest.ml", "the signature of the master list is wrong"),
            ("masterlist-wrong-signer.ml", "its signer's certificate is not for master lists"),
            ("masterlist-other-content.ml", "the master list cannot be read"),
            ("defects.bin", "the master list cannot be read"), ("csca-2.crl", "the master list cannot be read"),
        ]
    )
    func wrongMasterList(name: String, fault: String) throws {
        let bytes = try file(name)
        #expect(throws: Malformed(fault)) { try MasterList(bytes) }
    }

    @Test("an export of the directory gives its lists, certificates and revocation lists")
    func directory() throws {
        let lists = try #require(DirectoryExport.values(of: try file("icaopkd-ml.ldif")))
        #expect(lists == [.masterList(try file("masterlist.ml"))])
        let others = try #require(DirectoryExport.values(of: try file("icaopkd-dsc-crl.ldif")))
        #expect(
            others == [
                .certificate(try file("ds-p256.cer")), .certificate(try file("ds-pss.cer")),
                .revocationList(try file("csca-2.crl")),
            ]
        )
        #expect(DirectoryExport.values(of: []) == nil)
        #expect(DirectoryExport.values(of: Array("dn: x\npkdMasterListContent:: ***\n".utf8)) == nil)
        #expect(DirectoryExport.values(of: Array("dn: x\ncn: y\n".utf8)) == [])
    }

    @Test("the files of a folder are taken in any order: authorities, then what they have signed")
    func folder() throws {
        let names = [
            "csca-2.crl", "csca-2-wrong-signature.crl", "defects.bin", "link-2-3.cer", "icaopkd-ml.ldif",
            "icaopkd-dsc-crl.ldif", "csca-2-brainpool.cer", "masterlist-wrong-signature.ml",
        ]
        for order in [names, names.reversed()] {
            var anchors = DocumentAnchors()
            let files = try order.map { (name: $0, content: try file($0)) } + [("note.txt", Array("hello".utf8))]
            let summary = anchors.addFiles(files, at: time)
            #expect(anchors.count == 5)
            #expect(anchors.linkCount == 2)
            // The list of the folder and that of the directory are the same.
            #expect(anchors.revocationListCount == 1)
            #expect(anchors.signers.count == 2)
            #expect(anchors.defects(of: try catalogue.certificate("ds-defect")).count == 1)
            let warned = Set(summary.warnings.compactMap { $0.split(separator: ":").first.map(String.init) })
            #expect(warned == ["csca-2-wrong-signature.crl", "masterlist-wrong-signature.ml", "note.txt"])
        }
    }

    @Test("a directory alone brings no authority")
    func directoryAlone() throws {
        var anchors = DocumentAnchors()
        let files = [(name: "a.ldif", content: try file("icaopkd-ml.ldif"))]
        let summary = anchors.addFiles(files, at: time)
        #expect(anchors.count == 0)
        #expect(summary.warnings == ["a.ldif: no trusted authority has signed it"])
    }

    @Test("certificates and revocation lists are read in PEM too, and archives are told apart")
    func forms() throws {
        let certificate = try file("csca-1-rsa.cer")
        let pem = Array(PEM.certificate.encode(certificate).utf8)
        #expect(try DocumentAnchorFile(pem) == .certificate(try DocumentCertificate(certificate)))
        let list = try file("csca-2.crl")
        let text = Array(PEM.revocationList.encode(list).utf8)
        #expect(try DocumentAnchorFile(text) == .revocationList(try RevocationList(list)))
        let archive = Malformed("it is a zip archive: unpack it, and name the files in it")
        #expect(throws: archive) { try DocumentAnchorFile([0x50, 0x4B, 3, 4, 0]) }
        #expect(throws: Malformed("it is no certificate and no list")) { try DocumentAnchorFile([]) }
        let long = Malformed("one certificate or list may have at most 16 MiB")
        let header: [UInt8] = [0x30, 0x84, 0x01, 0x00, 0x00, 0x00, 0x30]
        #expect(throws: long) { try DocumentAnchorFile(header + [UInt8](repeating: 0, count: 1 << 24)) }
        let wrong = Malformed("the signature of the master list is wrong")
        let bad = try file("masterlist-wrong-signature.ml")
        #expect(throws: wrong) { try DocumentAnchorFile(bad) }
    }

    @Test("a signer with a defect is not trusted")
    func defects() async throws {
        var anchors = try catalogue.anchors()
        try anchors.addDefects(try SignedData(try file("defects.bin")), at: time)
        #expect(anchors.defects(of: try catalogue.certificate("ds-defect")).count == 1)
        #expect(anchors.defects(of: try catalogue.certificate("ds-p256")).isEmpty)
        var strangers = DocumentAnchors()
        let list = try SignedData(try file("defects.bin"))
        #expect(throws: DocumentAnchors.notTrusted) { try strangers.addDefects(list, at: time) }
    }

    @Test("an old file with indefinite lengths and octets in parts is read as one with definite lengths")
    func indefiniteLengths() throws {
        let sod = try #require(try catalogue.document("bac-td3").files["SOD"])
        let info = try BERTLV(sod)
        // The outermost objects get indefinite lengths.
        let content = try BERTLV(info.value)
        let parts = try content.children
        let signed = try #require(try parts[1].children.first)
        let indefinite =
            [0x30, 0x80] + parts[0].encoded + [0xA0, 0x80, 0x30, 0x80] + signed.value + [0, 0, 0, 0, 0, 0]
        let file = BERTLV(0x77, indefinite).encoded
        let read = try SecurityObject.signedData(file)
        #expect(throws: Never.self) { try read.proofs(of: .securityObject) }
    }

    @Test("the end of an object with an indefinite length is found, and no byte after it is asked for")
    func ending() {
        let inner = BERTLV(0x04, [UInt8](repeating: 0, count: 300)).encoded
        let object = [0x30, 0x80] + inner + [0x30, 0x80, 0x02, 0x01, 0x05, 0x00, 0x00, 0x00, 0x00]
        for step in [1, 2, 7, 100] {
            var ending = IndefiniteLength()
            var (read, commands) = (2, 0)
            while let least = ending.least(of: Array(object.prefix(read))), least > read, commands < 1000 {
                #expect(least <= object.count)
                read = min(least, read + step)
                commands += 1
            }
            #expect(read == object.count)
        }
        for wrong in ["3000", "0480", "30800480", "0000", "308030"] + [String(repeating: "3080", count: 25)] {
            var ending = IndefiniteLength()
            let least = ending.least(of: hex(wrong))
            #expect(least == nil || least.map { $0 > wrong.utf8.count / 2 } == true, "\(wrong)")
        }
    }

    @Test("thousands of signers, deep nesting and cut files are malformed")
    func bombs() throws {
        let sod = try #require(try catalogue.document("bac-td3").files["SOD"])
        for count in stride(from: 0, to: sod.count, by: 3) {
            #expect(throws: SignedData.Fault.malformed) { try SecurityObject.signedData(Array(sod.prefix(count))) }
        }
        let nested = (0..<200_000).reduce(into: [UInt8]()) { bytes, _ in bytes += [0x30, 0x80] }
        #expect(throws: SignedData.Fault.malformed) { try SignedData(nested) }
        let info = try BERTLV(try BERTLV(sod).value)
        var fields = try #require(try info.children[1].children.first).children
        let signers = try #require(fields.last)
        let one = try #require(try signers.children.first)
        fields[fields.count - 1] = BERTLV(0x31, [BERTLV](repeating: one, count: 5000))
        let bomb = BERTLV(0x30, [try info.children[0], BERTLV(0xA0, [BERTLV(0x30, fields)])]).encoded
        #expect(throws: SignedData.Fault.malformed) { try SignedData(bomb) }
    }

    @Test("a signed attribute that has one value is malformed with two", arguments: [3, 4, 5] as [UInt8])
    func twoValues(attribute: UInt8) throws {
        let type: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, attribute]
        var found = 0
        func changed(_ object: BERTLV, _ second: (BERTLV) -> BERTLV?) -> BERTLV {
            guard [0x30, 0x31, 0xA0, 0x77].contains(object.tag), var parts = try? object.children else { return object }
            if parts.count == 2, parts[0] == BERTLV(0x06, type), let value = try? parts[1].children.first {
                found += 1
                parts[1] = BERTLV(0x31, [value] + [second(value)].compactMap(\.self))
            }
            return BERTLV(object.tag, parts.map { changed($0, second) })
        }
        let names = ["bac-td3", "bac-aa-rsa", "bac-aa-ec", "pace-gm-bac"]
        for name in names {
            let sod = try BERTLV(try #require(try catalogue.document(name).files["SOD"]))
            #expect(throws: Never.self) { try SignedData(changed(sod, { _ in nil }).value) }
            let before = found
            let forms: [(BERTLV) -> BERTLV] = [
                { $0 }, { BERTLV($0.tag, [UInt8](repeating: 0, count: $0.value.count)) },
            ]
            for form in forms {
                let other = changed(sod, form).value
                guard found > before else { continue }
                #expect(throws: SignedData.Fault.malformed) { try SignedData(other) }
            }
        }
        #expect(found > 0 || attribute == 5)
    }

    @Test("every byte of a certificate counts for its signature")
    func bytes() throws {
        let anchors = try catalogue.anchors()
        let bytes = try file("ds-rsa.cer")
        for index in stride(from: 0, to: bytes.count, by: 5) {
            var changed = bytes
            changed[index] ^= 4
            guard let certificate = try? DocumentCertificate(changed) else { continue }
            #expect(anchors.chain(of: certificate, at: time) == nil, "byte \(index)")
        }
    }

    @Test("codes of issuing states find the countries of certificates")
    func countries() {
        #expect(IssuingCountry.certificates(of: "D") == ["DE"])
        #expect(IssuingCountry.certificates(of: "FRA") == ["FR"])
        #expect(IssuingCountry.certificates(of: "GBD") == ["GB"])
        #expect(IssuingCountry.certificates(of: "RKS") == ["KS", "XK"])
        #expect(IssuingCountry.certificates(of: "EUE") == ["EU"])
        #expect(IssuingCountry.certificates(of: "XKX") == ["KS", "XK"])
        #expect(IssuingCountry.certificates(of: "BMU") == ["BM", "GB"])
        // Organizations are of no country, and persons without a state have no issuer.
        for code in ["XCE", "XBA", "XCC", "XIM", "IAO"] {
            #expect(IssuingCountry.certificates(of: code) == [code])
        }
        for code in ["ZZZ", "XXA", "XXB", "XXX", ""] { #expect(IssuingCountry.certificates(of: code).isEmpty) }
    }
}
