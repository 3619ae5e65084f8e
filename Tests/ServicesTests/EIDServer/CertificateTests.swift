// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import ISO7816
import TestSupport
import Testing
import Text

@testable import EIDServer
@testable import VirtualEID

/// Checks with EID what the server sends. `make peer-test` shows that AusweisApp2 accepts it.
@Suite(.timeLimit(.minutes(5))) struct CertificateTests {
    private func conversation(_ query: [String: String]) throws -> Conversation {
        try Conversation(
            try ServiceOptions(query),
            origin: "https://localhost:1",
            authority: try CVAuthority(folder: CVAuthority.folder),
            certificateHashes: [[UInt8](repeating: 1, count: 32)],
            today: CertificateRecipe.today,
            handshake: Handshake(
                version: "TLSv1.2",
                cipher: "",
                isResumed: false,
                serverName: nil,
                pskIdentity: nil,
                session: []
            )
        )
    }

    /// The protocol data of the answer to StartPAOS.
    private func eac1(_ query: [String: String]) throws -> XMLElement {
        let conversation = try conversation(query)
        let start = XML.element(
            "soap:Envelope",
            PAOSNamespace.allCases.map { ("xmlns:\($0.prefix)", $0.rawValue) },
            [
                .element(
                    "soap:Body",
                    [],
                    [.element("iso:StartPAOS", [], [.element("iso:SessionIdentifier", text: conversation.id)])]
                )
            ]
        )
        let body = start.document
        let head = "POST /paos HTTP/1.1\r\nContent-Length: \(body.count)\r\n\r\n"
        var buffer = Array(head.utf8) + body
        let request = try #require(HTTPRequest(from: { nil }, buffer: &buffer, answerEarly: { _ in true }))
        let answer = conversation.answer(
            request,
            Handshake(version: "", cipher: "", isResumed: false, serverName: nil, pskIdentity: nil, session: [])
        )
        let message = try PAOSMessage(answer.body)
        #expect(message.protocolType == "EAC1InputType")
        return try #require(message.body.child(.iso, "AuthenticationProtocolData"))
    }

    private func certificates(_ data: XMLElement) throws -> [CVCertificate] {
        try data.children(.iso, "Certificate").map { try CVCertificate(try #require(Hex.decode($0.trimmed))) }
    }

    @Test(
        "the chain of a run leads from the root to a terminal with the hash of the description",
        arguments: [[:], ["chain": "link"], ["reverse": "1"], ["cvca": "1", "can": "1"]]
    )
    func chain(query: [String: String]) throws {
        let data = try eac1(query)
        let all = try certificates(data)
        var issuer = try CVCertificate(try TestPKI.file("cvca.cvcert"))
        var chain: [CVCertificate] = []
        while let next = all.first(where: {
            $0.authorityReference == issuer.holderReference && $0.holderReference != issuer.holderReference
        }) {
            let digest = try #require(issuer.digest)
            #expect(try next.isSigned(by: try issuer.publicKey.key(inheriting: .brainpoolP256r1), digest))
            #expect(issuer.chat.role.mayIssue(next.chat.role))
            #expect(next.effectiveDate <= CertificateRecipe.today && next.expirationDate >= CertificateRecipe.today)
            chain.append(next)
            issuer = next
        }
        #expect(chain.count == (query["chain"] == "link" ? 3 : 2))
        let terminal = try #require(chain.last)
        #expect(terminal.chat.role == .terminal)
        #expect(terminal.chat.rights.contains(.canAllowed) == (query["can"] == "1"))
        let description = try #require(Hex.decode(data.child(.iso, "CertificateDescription")?.trimmed ?? "-"))
        #expect(try DigestAlgorithm.sha256.hash(description) == terminal.descriptionHash)
    }

    @Test("rights and auxiliary data are those of the URL")
    func rights() throws {
        let data = try eac1(["required": "GivenNames,AgeVerification", "optional": "DG16", "age": "21"])
        func rights(_ name: String) throws -> AccessRights {
            try CHAT(try BERTLV(try #require(Hex.decode(data.child(.iso, name)?.trimmed ?? "-")))).rights
        }
        #expect(try rights("RequiredCHAT") == AccessRights([.readGivenNames, .ageVerification]))
        #expect(try rights("OptionalCHAT") == AccessRights([.readDataGroup16]))
        let auxiliary = try #require(Hex.decode(data.child(.iso, "AuthenticatedAuxiliaryData")?.trimmed ?? "-"))
        #expect(try AuxiliaryData(try BERTLV(auxiliary)).values[.dateOfBirth] == CertificateRecipe.today.yearsAgo(21))
    }

    @Test(
        "invalid parameters are refused",
        arguments: [
            ("mode", "tls"), ("required", "Shoes"), ("age", "-1"), ("can", "yes"), ("fault", "none"),
            ("community", "1"),
        ]
    )
    func wrong(name: String, value: String) {
        #expect(throws: ServiceOptions.Wrong.self) { try ServiceOptions([name: value]) }
    }

    @Test("EF.CardSecurity of the virtual card is genuine, a changed one is not")
    func passiveAuthentication() throws {
        let authority = try TestPKI.file("csca.der")
        let digits = try #require(DefaultCard.mandatoryFiles.first { $0.fileID == 0x011D }).content
        let file = try #require(Hex.decode(digits))
        #expect(PassiveAuthentication.isGenuine(file, authority: authority))
        var changed = file
        changed[file.count / 4] ^= 1
        #expect(!PassiveAuthentication.isGenuine(changed, authority: authority))
        #expect(!PassiveAuthentication.isGenuine([], authority: authority))
    }
}
