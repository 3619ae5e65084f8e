// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import Foundation
import HTTP
import Synchronization
import TestSupport
import Testing
import Text

@testable import EService

struct CertificateChainTests {
    private static let first = Array("DETESTeIDBG00001".utf8)
    private static let second = Array("DETESTeIDBG00002".utf8)

    // MARK: For a card

    @Test(
        "the chain begins at the trust point of the card, for any order of the certificates",
        arguments: [
            (["dv"], first, ["dv"]), (["cvca", "dv"], first, ["dv"]), (["dv", "dv-next"], second, ["dv-next"]),
            (["dv-next", "link"], first, ["link", "dv-next"]), (["link", "dv-next"], first, ["link", "dv-next"]),
            (["cvca-next", "dv-next", "cvca", "link"], first, ["link", "dv-next"]),
            // Of two chains the shorter one.
            (["link", "dv-next", "dv"], first, ["dv"]),
            (["dv"], second, nil), ([], first, nil), (["link", "cvca", "cvca-next"], first, nil),
            (["dv-next"], first, nil),
        ] as [([String], [UInt8], [String]?)]
    )
    func chain(names: [String], reference: [UInt8], expected: [String]?) throws {
        let chain = try Fixtures.pool(names).chain(startingAt: reference)
        let certificates = try expected.map { try ($0 + ["terminal"]).map(Fixtures.certificate) }
        #expect(chain == certificates)
    }

    @Test("the current trust point of a card comes before its previous one")
    func bothReferences() throws {
        let pool = try Fixtures.pool(["link", "dv-next"])
        #expect(pool.chain(startingAtFirstOf: [Self.second, Self.first])?.count == 2)
        #expect(pool.chain(startingAtFirstOf: [Self.first, Self.second])?.count == 3)
        #expect(pool.chain(startingAtFirstOf: [Array("DEOTHER".utf8), Self.first])?.count == 3)
        #expect(pool.chain(startingAtFirstOf: []) == nil)
    }

    @Test("a pool ignores other terminal certificates, repeated ones, and those beyond its limit")
    func bounds() throws {
        var pool = try Fixtures.pool(["dv", "dv", "terminal", "link"])
        #expect(try pool.certificates == ["dv", "link"].map(Fixtures.certificate))
        pool.add(try (0..<200).map { try Fixtures.numbered($0) })
        #expect(pool.certificates.count == CVCertificatePool.maximumCount)
    }

    // MARK: From an anchor

    @Test(
        "a chain from an anchor is accepted",
        arguments: [
            (["dv"], ["cvca"], 2), (["dv-next"], ["cvca-next"], 2), (["dv-next", "link"], ["cvca"], 3),
            (["link", "cvca-next", "dv-next"], ["cvca"], 3),
        ]
    )
    func verified(names: [String], anchors: [String], count: Int) throws {
        let anchors = try anchors.map(Fixtures.certificate)
        let pool = try Fixtures.pool(names)
        let test = try TrustAnchors(test: anchors).verify(pool, on: Fixtures.day())
        #expect(test.chain.count == count && !test.isProductive)
        #expect(try TrustAnchors(productive: anchors).verify(pool, on: Fixtures.day()).isProductive)
    }

    @Test(
        "a chain without an anchor is refused",
        arguments: [
            (["dv"], []), (["dv"], ["cvca-next"]), (["dv-next"], ["cvca"]), ([], ["cvca"]), (["cvca", "dv"], []),
        ] as [([String], [String])]
    )
    func noChain(names: [String], anchors: [String]) throws {
        let anchors = TrustAnchors(test: try anchors.map(Fixtures.certificate))
        #expect(throws: TrustAnchors.ChainFault.noChain) {
            try anchors.verify(Fixtures.pool(names), on: Fixtures.day())
        }
    }

    @Test("a chain with one wrong signature is refused", arguments: ["terminal", "dv-next", "link"])
    func signature(name: String) throws {
        func forged(_ other: String) throws -> CVCertificate {
            let certificate = try Fixtures.certificate(other)
            guard other == name else { return certificate }
            var bytes = certificate.encoded
            bytes[bytes.count - 1] ^= 1
            return try CVCertificate(bytes)
        }
        let pool = CVCertificatePool(terminal: try forged("terminal"), try ["link", "dv-next"].map(forged))
        let anchors = TrustAnchors(test: [try Fixtures.certificate("cvca")])
        #expect(throws: TrustAnchors.ChainFault.signature) { try anchors.verify(pool, on: Fixtures.day()) }
    }

    @Test(
        "a document verifier for other terminals cannot certify an authentication terminal",
        arguments: [CHAT.TerminalType.inspectionSystem, .signatureTerminal]
    )
    func otherTerminals(type: CHAT.TerminalType) throws {
        let other = try CertificateRecipe.documentVerifier.changed { recipe in
            recipe.chat = CHAT(type, .documentVerifierOfficial, authorization: .max)
        }.certificate()
        // A document verifier of the right type that has not signed the terminal.
        let decoy = try CertificateRecipe.documentVerifier.changed { $0.holder = "DEDVOTHER00001" }.certificate()
        let terminal = try CertificateRecipe().certificate()
        let pool = CVCertificatePool(terminal: terminal, [decoy, other])
        #expect(pool.chain(startingAt: Self.first) == nil)
        let anchors = TrustAnchors(test: [try Fixtures.certificate("cvca")])
        #expect(throws: TrustAnchors.ChainFault.noChain) { try anchors.verify(pool, on: CertificateRecipe.today) }
        let genuine = CVCertificatePool(terminal: terminal, [decoy, other, try Fixtures.certificate("dv")])
        #expect(try anchors.verify(genuine, on: CertificateRecipe.today).chain.count == 2)
    }

    @Test("a certificate is valid from its first to its last day")
    func dates() throws {
        let anchors = TrustAnchors(test: [try Fixtures.certificate("cvca")])
        let pool = try Fixtures.pool(["dv"])
        let terminal = pool.terminal
        func verify(_ year: Int, _ month: Int, _ day: Int) throws {
            _ = try anchors.verify(pool, on: CVDate(year: year, month: month, day: day) ?? .earliest)
        }
        let (from, to) = (terminal.effectiveDate, terminal.expirationDate)
        // The days below rely on this.
        #expect((from.month, from.day) == (1, 1))
        #expect((to.month, to.day) == (12, 31))
        #expect(throws: Never.self) { try verify(from.year, 1, 1) }
        #expect(throws: Never.self) { try verify(to.year, 12, 31) }
        #expect(throws: TrustAnchors.ChainFault.expired) { try verify(from.year - 1, 12, 31) }
        #expect(throws: TrustAnchors.ChainFault.expired) { try verify(to.year + 1, 1, 1) }
        _ = try anchors.verify(pool, on: nil)
    }

    // MARK: Files

    @Test("a folder of anchors is read, with warnings for wrong files")
    func folder() throws {
        let folder = try TemporaryFolder()
        #expect(TrustAnchors(folder: folder.path + "/none").warnings.count == 1)
        try folder.write("a.cvcert", TestPKI.file("cvca.cvcert"))
        try folder.write("link.cvcert", TestPKI.file("link.cvcert"))
        try folder.write("dv.cvcert", TestPKI.file("dv.cvcert"))
        try folder.write("broken.cvcert", [0x7F, 0x21])
        try folder.write("huge.cvcert", [UInt8](repeating: 0, count: 100_000))
        try folder.write("README", [1])
        try folder.write(".hidden.cvcert", [1])
        var forged = try TestPKI.file("cvca.cvcert")
        forged[forged.count - 1] ^= 1
        try folder.write("forged.cvcert", forged)
        try FileManager.default.createDirectory(atPath: folder.path + "/test", withIntermediateDirectories: false)
        try folder.write("test/b.cvcert", TestPKI.file("cvca-next.cvcert"))
        let anchors = TrustAnchors(folder: folder.path)
        #expect(try anchors.productive == [Fixtures.certificate("cvca")])
        #expect(try anchors.test == [Fixtures.certificate("cvca-next")])
        #expect(try anchors.links == [Fixtures.certificate("link")])
        #expect(anchors.warnings.count == 4)
        // A daemon checks signatures with the first use, not at its start.
        let warnings = Mutex<[String]>([])
        let watched = TrustAnchorFolder(folder.path, mayBeMissing: false) { text in
            warnings.withLock { $0.append(text) }
        }
        watched.read()
        #expect(warnings.withLock { $0.count } == 3)
        let used = (watched.current(), watched.current()).1
        #expect(used.productive == anchors.productive)
        #expect(used.test == anchors.test)
        #expect(warnings.withLock { $0.sorted() } == anchors.warnings.map(\.description).sorted())
    }

    @Test("a link certificate is stored once and read again")
    func store() throws {
        let folder = try TemporaryFolder()
        let store = LinkCertificateStore(folder: folder.path + "/links")
        #expect(store.load() == [])
        let link = try Fixtures.certificate("link")
        #expect(store.save([link, link], today: try Fixtures.day()))
        #expect(store.save([link], today: try Fixtures.day()))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path + "/links").count == 1)
        #expect(LinkCertificateStore(folder: folder.path + "/links").load() == [link])
        // Other certificates in the folder are ignored.
        try folder.write("links/root.cvcert", TestPKI.file("cvca.cvcert"))
        try folder.write("links/broken.cvcert", [0])
        #expect(store.load() == [link])
        #expect(!LinkCertificateStore(folder: "/proc/nowhere").save([link], today: try Fixtures.day()))
    }

    @Test("the store is bounded, and expired certificates make room")
    func storeBound() throws {
        let folder = try TemporaryFolder()
        let store = LinkCertificateStore(folder: folder.path)
        let many = try (0..<LinkCertificateStore.maximumCount).map { try Fixtures.numbered($0) }
        let link = try Fixtures.certificate("link")
        #expect(store.save(many, today: try Fixtures.day()))
        #expect(!store.save([link], today: try Fixtures.day()))
        #expect(!store.load().contains(link))
        let later = CVDate(year: link.expirationDate.year + 1, month: 1, day: 1) ?? .earliest
        #expect(store.save([link], today: later))
        #expect(store.load() == [link])
    }

    @Test("a damaged link certificate is replaced when a service sends it again, and makes room", arguments: [0, 40])
    func damagedLink(place: Int) throws {
        let folder = try TemporaryFolder()
        let store = LinkCertificateStore(folder: folder.path)
        let link = try Fixtures.certificate("link")
        #expect(store.save([link], today: try Fixtures.day()))
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.path).first)
        var bytes = link.encoded
        bytes[place] ^= 1
        try folder.write(name, bytes)
        #expect(store.load() != [link])
        #expect(store.save([link], today: try Fixtures.day()))
        #expect(store.load() == [link])
    }

    @Test("a link certificate that cannot be read now is not deleted to make room")
    func unknownLink() throws {
        let folder = try TemporaryFolder()
        let store = LinkCertificateStore(folder: folder.path)
        // The kernel answers EIO for the address 0.
        for number in 0..<LinkCertificateStore.maximumCount {
            #expect(symlink("/proc/self/mem", "\(folder.path)/\(number).cvcert") == 0)
        }
        #expect(!store.save([try Fixtures.certificate("link")], today: try Fixtures.day()))
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(names.count == LinkCertificateStore.maximumCount)
    }

    @Test("a stored link certificate completes the chain of a service that does not send it")
    func storedLinks() throws {
        let folder = try TemporaryFolder()
        var configuration = EServiceConfiguration(userAgent: .init(name: "badged", version: (0, 1, 0)))
        configuration.trustAnchors = TrustAnchors(test: [try Fixtures.certificate("cvca")])
        configuration.linkCertificates = LinkCertificateStore(folder: folder.path)
        let day = try Fixtures.day()
        configuration.today = { day }
        let origin = try #require(WebAddress("https://dienst.example/token")).origin
        let check = RequestCheck(configuration: configuration, isDeveloperMode: false, origin: origin, connections: [])
        let short = try Fixtures.input(["dv-next", "terminal"])
        #expect(throws: EServiceFailure(.preVerificationInvalidCertificateChain, .certificateChain)) {
            try check.check(short)
        }
        _ = try check.check(Fixtures.input(["terminal", "link", "dv-next"]))
        let request = try check.check(short).request
        #expect(request.certificates.chain(startingAt: Self.first)?.count == 3)
    }
}
