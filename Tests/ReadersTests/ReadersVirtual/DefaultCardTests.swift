// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import Glibc
import ISO7816
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("default card data", .timeLimit(.minutes(5)))
struct DefaultCardTests {
    private static let python = "/usr/bin/python3"
    private static let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()

    @Test("the committed data matches the output of the script", .enabled(if: access(python, X_OK) == 0))
    func generated() throws {
        let script = Self.root + "/Tests/PKI/make-card-data.py"
        let sink = open("/dev/null", O_WRONLY)
        defer { close(sink) }
        let process = try VPCDProgram.spawn([script, "--check"], output: sink, program: Self.python)
        #expect(VPCDProgram.status(of: process) == 0)
    }

    @Test("EF.CardSecurity is signed by the document signer, whose certificate is signed by the country signer")
    func passiveAuthentication() async throws {
        let terminal = try await OnlineTerminal.through(try VirtualCard())
        let file = try #require(terminal.security)
        let raw = try await terminal.read(0x1D).data
        let signed = try BERTLV(raw).children[1].children[0].children
        let signer = try #require(signed.last).children[0].children
        #expect(signer.count == 6)
        let attributes = signer[3].value
        let signerKey = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("ds.p8"))).publicKey
        let message = BERTLV(0x31, attributes).encoded
        #expect(try ECDSA.verify(der: signer[5].value, of: message, with: signerKey, digest: .sha256))
        let digest = try DigestAlgorithm.sha256.hash(file.content)
        #expect(attributes.indices.contains { attributes[$0...].starts(with: digest) })
        let certificate = try BERTLV(try TestPKI.file("ds.der"))
        #expect(try signed[3].children[0] == certificate)
        let parts = try certificate.children
        let country = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("csca.p8"))).publicKey
        let signature = Array(parts[2].value.dropFirst())
        #expect(try ECDSA.verify(der: signature, of: parts[0].encoded, with: country, digest: .sha256))
    }

    @Test("EF.CardSecurity contains the hash of every data group")
    func groupHashes() async throws {
        let terminal = try await OnlineTerminal.through(try VirtualCard())
        let content = try #require(terminal.security).content
        for group: UInt8 in 1...22 where group != 16 {
            let hash = try DigestAlgorithm.sha256.hash(try await terminal.read(group).data)
            #expect(content.indices.contains { content[$0...].starts(with: hash) }, "group \(group)")
        }
    }
}
