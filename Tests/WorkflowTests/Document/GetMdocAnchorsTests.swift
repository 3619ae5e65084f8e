// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CountryAuthorities
import MdocFeature
import TestSupport
import Testing
import Text

/// GET_MDOC_ANCHORS and the check `mdocAnchors` of GET_HEALTH.
@Suite("Authorities of mobile documents for clients", .timeLimit(.minutes(5)))
@Loop struct GetMdocAnchorsTests {
    private static func client(of folder: MdocAnchorFolder) async throws -> (TestServer, TestClient) {
        let server = try await TestServer(readers: 0, moreFeatures: { _ in [MdocAnchorsFeature(folder)] })
        return (server, try server.connect())
    }

    @Test("an answer tells what is trusted, and for which types")
    func anchors() async throws {
        let file = try vectorFile("mdoc/authority-lists.json")
        let certificates = try (file["authorities"]?.array ?? []).map { certificate in
            try #require(certificate.string.flatMap { Base64.standard.decode($0) })
        }
        try #require(certificates.count == 2)
        let temporary = try TemporaryFolder()
        try AnchorWriter(folder: temporary.path).write([
            "UT.cer": certificates[0], "org.iso.18013.5.1.mDL/XX.cer": certificates[1], "broken.cer": [1],
        ])
        let (server, client) = try await Self.client(of: MdocAnchorFolder(temporary.path, warn: { _ in }))
        let answer = await client.answer(to: #"{"cmd":"GET_MDOC_ANCHORS"}"#)
        #expect(answer?["msg"]?.string == "MDOC_ANCHORS")
        #expect(answer?["folder"]?.string == temporary.path)
        #expect(answer?["authorities"]?.int == 2)
        #expect(answer?["countries"] == .array([.string("UT"), .string("XX")]))
        #expect(answer?["docTypes"] == .array([.string("org.iso.18013.5.1.mDL")]))
        #expect(answer?["warnings"]?.array?.count == 1)
        let health = await client.answer(to: #"{"cmd":"GET_HEALTH"}"#)
        #expect(health?["checks"]?.array?.first { $0["name"]?.string == "mdocAnchors" }?["ok"]?.bool == true)
        withExtendedLifetime(server) {}
    }

    @Test(
        "a list that cannot be used is a fault",
        arguments: [("broken.cwt", [0xD2, 0x84]), ("empty.cwt", []), ("UT-1.crl", [0x30])] as [(String, [UInt8])]
    )
    func unusableList(name: String, content: [UInt8]) async throws {
        let file = try vectorFile("mdoc/authority-lists.json")
        let certificate = try #require(file["authorities"]?.array?.first?.string.flatMap { Base64.standard.decode($0) })
        let temporary = try TemporaryFolder()
        try AnchorWriter(folder: temporary.path).write(["UT.cer": certificate, name: content])
        let (server, client) = try await Self.client(of: MdocAnchorFolder(temporary.path, warn: { _ in }))
        let health = await client.answer(to: #"{"cmd":"GET_HEALTH"}"#)
        let check = health?["checks"]?.array?.first { $0["name"]?.string == "mdocAnchors" }
        #expect(check?["ok"]?.bool == false)
        #expect(check?["unusableLists"]?.int == 1)
        #expect(check?["cause"]?.string?.contains(name) == true)
        withExtendedLifetime(server) {}
    }

    @Test("a missing folder is a fault, if it is not the default one", arguments: [true, false])
    func missing(mayBeMissing: Bool) async throws {
        let folder = MdocAnchorFolder("/nowhere/mdoc", mayBeMissing: mayBeMissing, warn: { _ in })
        let (server, client) = try await Self.client(of: folder)
        let health = await client.answer(to: #"{"cmd":"GET_HEALTH"}"#)
        let check = health?["checks"]?.array?.first { $0["name"]?.string == "mdocAnchors" }
        #expect(check?["ok"]?.bool == mayBeMissing)
        withExtendedLifetime(server) {}
    }
}
