// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("online authentication with a virtual card", .timeLimit(.minutes(5)))
struct AuthenticationTests {
    private static func file(_ name: String) throws -> CVCertificate {
        try CVCertificate(try TestPKI.file("\(name).cvcert"))
    }

    @Test("a complete online authentication reads the data that the rights allow")
    func complete() async throws {
        let terminal = try await OnlineTerminal.through(try VirtualCard())
        #expect(terminal.pace?.certificationAuthorities.current == Array("DETESTeIDBG00001".utf8))
        #expect(terminal.pace?.certificationAuthorities.previous == nil)
        let name = BERTLV(0x65, [BERTLV(0x0C, Array("WEIẞENBÖCK".utf8))])
        #expect(try await terminal.read(0x05).data == name.encoded)
        #expect(try await terminal.read(0x06).data == [0x66, 0x02, 0x0C, 0x00])
        let image = try await terminal.read(0x0E)
        #expect(image.status == .ok)
        #expect(image.data.count == 30_008)
        for group: UInt8 in [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 15, 17, 18, 19, 20, 21, 22] {
            #expect(try await terminal.read(group).data.first == 0x60 | group & 0x0F + (group > 15 ? 0x10 : 0))
        }
        #expect(try await terminal.read(0x10).status == StatusWord(0x6A82))
        // The chain grants no write access.
        #expect(try await terminal.status("00D6910003 710100") == "6982")
    }

    @Test("the effective rights are the intersection of CHAT, document verifier and terminal rights")
    func effectiveRights() async throws {
        let names = AccessRights([.readGivenNames, .readFamilyName])
        let given = AccessRights([.readGivenNames, .readDateOfBirth])
        let verifier = CertificateRecipe.documentVerifier.changed { $0.chat = CHAT(.documentVerifierOfficial, names) }
        let recipe = CertificateRecipe().changed { $0.chat = CHAT(.terminal, given) }
        let terminal = try await OnlineTerminal.through(
            try VirtualCard(),
            certificates: [try verifier.certificate(), try recipe.certificate()]
        )
        #expect(try await terminal.read(0x04).status == .ok)
        #expect(try await terminal.read(0x05).status == StatusWord(0x6982))
        #expect(try await terminal.read(0x08).status == StatusWord(0x6982))
        let modest = try await OnlineTerminal.through(try VirtualCard(), chat: CHAT(.terminal, []))
        #expect(try await modest.read(0x04).status == StatusWord(0x6982))
    }

    @Test("each step is refused until the previous step is complete")
    func order() async throws {
        let chain = try [Self.file("dv"), Self.file("terminal")]
        let terminal = try await OnlineTerminal.opened(try VirtualCard())
        #expect(try await terminal.readCardSecurity() == "6982")
        #expect(try await terminal.read(0x04).status == StatusWord(0x6982))
        #expect(try await terminal.authenticateChip() == "MSE 6982")
        #expect(try await terminal.authenticate() == "MSE 6A88")
        #expect(try await terminal.status("002A00BE027F4E") == "6985")
        // The terminal certificate requires its issuer's certificate.
        #expect(try await terminal.present([chain[1]]) == "DST 6A88")
        #expect(try await terminal.present([chain[0]]) == "9000")
        // A document verifier cannot authenticate as a terminal.
        #expect(try await terminal.authenticate(as: "DEDVBADGED00001", key: "dv") == "MSE 6A88")
        #expect(try await terminal.present([chain[1]]) == "9000")
        #expect(try await terminal.authenticate() == "9000")
        #expect(try await terminal.read(0x04).status == StatusWord(0x6982))
        #expect(try await terminal.identify(keyID: 1, sector: "sector-1").status == "MSE 6982")
        #expect(try await terminal.readCardSecurity() == "9000")
        // Each channel accepts one terminal.
        #expect(try await terminal.present([chain[0]]) == "DST 6985")
        #expect(try await terminal.authenticateChip() == "9000")
        #expect(try await terminal.read(0x04).status == .ok)
        #expect(try await terminal.authenticateChip() == "MSE 6985")
    }

    @Test("a channel without a CHAT refuses terminal authentication")
    func withoutCHAT() async throws {
        let terminal = try await OnlineTerminal(try VirtualCard())
        try await terminal.open(chat: nil)
        #expect(terminal.pace?.certificationAuthorities == .init())
        #expect(try await terminal.present([Self.file("dv")]) == "DST 6982")
    }

    @Test(
        "a link certificate permanently makes the next root the trust point",
        arguments: [["link", "dv-next", "terminal"], ["dv", "terminal"]]
    )
    func link(secondChain: [String]) async throws {
        let card = try VirtualCard()
        _ = try await OnlineTerminal.through(card, chain: ["link", "dv-next", "terminal"])
        await card.reset()
        // The old root remains valid as the previous trust point.
        let again = try await OnlineTerminal.through(card, chain: secondChain)
        #expect(again.pace?.certificationAuthorities.current == Array("DETESTeIDBG00002".utf8))
        #expect(again.pace?.certificationAuthorities.previous == Array("DETESTeIDBG00001".utf8))
        #expect(try await again.read(0x04).status == .ok)
    }

    static let refused: [(String, [CertificateRecipe], String)] = [
        ("a forged signature", [.documentVerifier.changed { $0.signer = "dv" }], "6300"),
        ("a signature with another hash", [.documentVerifier.changed { $0.signatureDigest = .sha1 }], "6300"),
        ("an unknown root", [.documentVerifier.changed { $0.authority = "DETESTeIDXX00001" }], "DST 6A88"),
        (
            "a root that is not linked yet",
            [
                .documentVerifier.changed {
                    $0.authority = "DETESTeIDBG00002"
                    $0.signer = "cvca-next"
                }
            ], "DST 6A88"
        ),
        ("a terminal from the root itself", [.documentVerifier.changed { $0.chat = OnlineTerminal.allRights }], "6300"),
        (
            "a document verifier from a document verifier",
            [
                .documentVerifier,
                .init().changed { $0.chat = CHAT(.documentVerifierOfficial, AccessRights(rawValue: 1)) },
            ], "6300"
        ),
        (
            "a root from a document verifier",
            [
                .documentVerifier,
                .init().changed {
                    $0.chat = CHAT(.cvca, AccessRights(rawValue: 1))
                    $0.writesParameters = true
                },
            ], "6300"
        ),
        ("an expired document verifier", [.documentVerifier.changed { $0.expiration = [2, 4, 0, 1, 0, 1] }], "6300"),
        ("an expired terminal", [.documentVerifier, .init().changed { $0.expiration = [2, 4, 0, 1, 0, 1] }], "6300"),
        (
            "a certificate that ends before it begins",
            [.documentVerifier.changed { $0.effective = [4, 9, 0, 1, 0, 1] }], "6300"
        ),
        (
            "another kind of terminal",
            [
                .documentVerifier.changed {
                    $0.chat = CHAT(.inspectionSystem, .documentVerifierOfficial, authorization: 3)
                }
            ],
            "6300"
        ),
        ("a root without domain parameters", [.documentVerifier.changed { $0.chat = CHAT(.cvca, []) }], "6300"),
    ]

    @Test("an invalid certificate chain is refused", arguments: refused)
    func chain(what: String, recipes: [CertificateRecipe], status: String) async throws {
        let date = try #require(CVDate(year: 2024, month: 1, day: 2))
        let terminal = try await OnlineTerminal.opened(try VirtualCard(.card { $0.currentDate = date }))
        #expect(try await terminal.present(try recipes.map { try $0.certificate() }) == status, "\(what)")
        #expect(try await terminal.authenticate() == "MSE 6A88")
    }

    @Test("the card's date advances only with official certificates")
    func date() async throws {
        let later: [UInt8] = [2, 5, 0, 6, 0, 1]
        let expiring = CertificateRecipe.documentVerifier.changed { $0.expiration = [2, 5, 0, 5, 3, 1] }
        for (verifier, status) in [
            (CertificateRecipe.documentVerifier, "6300"),
            (
                .documentVerifier.changed { $0.chat = CHAT(.documentVerifierNonOfficial, AccessRights(rawValue: 1)) },
                "9000"
            ),
        ] {
            let card = try VirtualCard()
            let terminal = try await OnlineTerminal.opened(card)
            #expect(try await terminal.present([expiring.certificate()]) == "9000")
            #expect(try await terminal.present([verifier.changed { $0.effective = later }.certificate()]) == "9000")
            #expect(try await terminal.present([expiring.certificate()]) == status)
        }
    }

    @Test("an expired link certificate is accepted, and an expired root is dropped")
    func oldLink() async throws {
        let link = CertificateRecipe.documentVerifier.changed {
            $0.holder = "DETESTeIDBG00002"
            $0.subject = "cvca-next"
            $0.writesParameters = true
            $0.chat = CHAT(.cvca, AccessRights(rawValue: .max))
            $0.expiration = [2, 4, 0, 2, 0, 1]
        }
        let date = try #require(CVDate(year: 2041, month: 1, day: 1))
        let terminal = try await OnlineTerminal.opened(try VirtualCard(.card { $0.currentDate = date }))
        #expect(try await terminal.present([link.certificate()]) == "9000")
        try await terminal.open()
        #expect(terminal.pace?.certificationAuthorities == .init(current: Array("DETESTeIDBG00002".utf8)))
    }

    @Test(
        "a terminal without a valid signature is refused",
        arguments: [("dv", 0, "6300"), ("terminal", 1, "6300"), ("terminal", 2, "6300")]
    )
    func proof(key: String, forgery: Int, status: String) async throws {
        let terminal = try await OnlineTerminal.opened(try VirtualCard())
        #expect(try await terminal.present([Self.file("dv"), Self.file("terminal")]) == "9000")
        let answer = try await terminal.authenticate(key: key) { signature in
            if forgery == 1 { signature[signature.count - 1] ^= 1 }
            if forgery == 2 { signature.removeLast() }
        }
        #expect(answer == status)
        // The challenge is invalid after one use, and the terminal has no rights.
        #expect(try await terminal.status("008200000102") == "6985")
        #expect(try await terminal.readCardSecurity() == "6982")
    }

    @Test("a signature with a hash other than the certificate's is refused")
    func wrongDigest() async throws {
        let terminal = try await OnlineTerminal.opened(try VirtualCard())
        #expect(try await terminal.present([Self.file("dv"), Self.file("terminal")]) == "9000")
        #expect(try await terminal.authenticate(digest: .sha512) == "MSE 6985")
    }

    @Test("every hash algorithm of the standard is accepted", arguments: DigestAlgorithm.allCases)
    func digests(digest: DigestAlgorithm) async throws {
        let terminal = try await OnlineTerminal.opened(try VirtualCard())
        let chain = [CertificateRecipe.documentVerifier, CertificateRecipe().changed { $0.digest = digest }]
        #expect(try await terminal.present(try chain.map { try $0.certificate() }) == "9000")
        #expect(try await terminal.authenticate(digest: digest) == "9000")
    }

    @Test(
        "terminal authentication requires the PIN, or the CAN with the CAN right",
        arguments: [
            (PasswordID.can, "500540", false, "6982"), (.can, "500540", true, "9000"),
            (.puk, "9876543210", true, "6982"), (.pin, "123456", false, "9000"),
        ]
    )
    func passwords(id: PasswordID, digits: String, canAllowed: Bool, status: String) async throws {
        let terminal = try await OnlineTerminal(try VirtualCard())
        try await terminal.open(id, digits)
        let rights = AccessRights(canAllowed ? [.readGivenNames, .canAllowed] : [.readGivenNames])
        let chain = [
            CertificateRecipe.documentVerifier, CertificateRecipe().changed { $0.chat = CHAT(.terminal, rights) },
        ]
        #expect(try await terminal.present(try chain.map { try $0.certificate() }) == "9000")
        #expect(try await terminal.authenticate() == status)
    }

    @Test("terminal authentication is refused with the transport PIN")
    func transportPIN() async throws {
        var description = VirtualEIDDescription()
        description.transportPIN = SecretBox(Secret("12345".utf8))
        let terminal = try await OnlineTerminal(try VirtualCard(description))
        try await terminal.open(.pin, "12345")
        #expect(try await terminal.present([Self.file("dv"), Self.file("terminal")]) == "9000")
        #expect(try await terminal.authenticate() == "6982")
    }

    @Test("chip authentication accepts only the ephemeral key from terminal authentication")
    func commitment() async throws {
        let terminal = try await OnlineTerminal.opened(try VirtualCard())
        #expect(try await terminal.present([Self.file("dv"), Self.file("terminal")]) == "9000")
        #expect(try await terminal.authenticate() == "9000")
        #expect(try await terminal.readCardSecurity() == "9000")
        let other = try ECPrivateKey(on: try Curve.brainpoolP256r1.group)
        #expect(try await terminal.authenticateChip(point: other.publicKey.uncompressed) == "6300")
        #expect(try await terminal.authenticateChip(point: [4, 1]) == "6A80")
        #expect(try await terminal.authenticateChip(keyID: 1) == "MSE 6A88")
        // Key 45 is reserved for privileged terminals.
        #expect(try await terminal.authenticateChip(keyID: 45) == "MSE 6982")
        #expect(try await terminal.authenticateChip() == "9000")
    }

    @Test("a privileged terminal uses the other chip authentication key")
    func privileged() async throws {
        let chain = [CertificateRecipe.documentVerifier, CertificateRecipe()]
        let terminal = try await OnlineTerminal.opened(try VirtualCard())
        #expect(try await terminal.present(try chain.map { try $0.certificate() }) == "9000")
        #expect(try await terminal.authenticate() == "9000")
        #expect(try await terminal.readCardSecurity() == "9000")
        #expect(try await terminal.authenticateChip(keyID: 45) == "9000")
        #expect(try await terminal.read(0x04).status == .ok)
    }

    @Test("the pseudonym is constant for a sector and differs between sectors and keys")
    func restrictedIdentification() async throws {
        let card = try VirtualCard()
        let terminal = try await OnlineTerminal.through(card)
        let first = try await terminal.identify(keyID: 1, sector: "sector-1")
        let pseudonym = try await terminal.identify(keyID: 2, sector: "sector-1", writesParameters: false)
        let second = try await terminal.identify(keyID: 2, sector: "sector-2", tag: 0xA2)
        #expect([first.status, pseudonym.status, second.status] == ["9000", "9000", "9000"])
        #expect(Set([first.identifier, pseudonym.identifier, second.identifier]).count == 3)
        #expect(first.identifier.count == 32)
        // Each sector object of the certificate identifies one sector.
        #expect(try await terminal.identify(keyID: 2, sector: "sector-2").status == "6300")
        #expect(try await terminal.identify(keyID: 2, sector: "dv").status == "6300")
        #expect(try await terminal.identify(keyID: 41, sector: "sector-1").status == "MSE 6A88")
        #expect(try await terminal.identify(keyID: 9, sector: "sector-1").status == "MSE 6A88")
        let again = try await OnlineTerminal.through(card)
        #expect(try await again.identify(keyID: 2, sector: "sector-1").identifier == pseudonym.identifier)
    }

    @Test("the pseudonym requires its right, and the first sector's identifier does not")
    func pseudonymRight() async throws {
        let terminal = try await OnlineTerminal.through(try VirtualCard(), chat: CHAT(.terminal, []))
        #expect(try await terminal.identify(keyID: 2, sector: "sector-1").status == "MSE 6982")
        #expect(try await terminal.identify(keyID: 1, sector: "sector-1").status == "9000")
    }

    static let questions: [(AuxiliaryData.Kind, String, String)] = [
        (.dateOfBirth, "19870923", "9000"), (.dateOfBirth, "19870922", "6300"), (.dateOfBirth, "20070923", "9000"),
        (.dateOfBirth, "2007092", "6300"), (.dateOfExpiry, "20390531", "9000"), (.dateOfExpiry, "20390601", "6300"),
        (.communityID, "\u{2}v\u{1}", "9000"), (.communityID, "\u{2}v\u{5}", "6300"),
    ]

    @Test("auxiliary data is compared with the card data", arguments: questions)
    func auxiliaryData(kind: AuxiliaryData.Kind, value: String, status: String) async throws {
        let data = AuxiliaryData([kind: Array(value.utf8)])
        let terminal = try await OnlineTerminal.through(try VirtualCard(), auxiliaryData: data)
        func ask(_ kind: AuxiliaryData.Kind) async throws -> String {
            let object = BERTLV(0x06, kind.identifier).encoded
            return try await terminal.send(CommandAPDU(0x80, 0x20, 0x80, 0x00, data: object)).status.description
        }
        #expect(try await ask(kind) == status)
        #expect(try await ask(kind == .dateOfExpiry ? .dateOfBirth : .dateOfExpiry) == "6A88")
    }

    @Test("age verification requires its right")
    func ageRight() async throws {
        let data = AuxiliaryData([.dateOfBirth: Array("20000101".utf8), .dateOfExpiry: Array("20300101".utf8)])
        let chat = CHAT(.terminal, AccessRights([.readGivenNames]))
        let terminal = try await OnlineTerminal.through(try VirtualCard(), chat: chat, auxiliaryData: data)
        #expect(try await terminal.status("802080000B060904007F000703010401") == "6982")
        #expect(try await terminal.status("802080000B060904007F000703010402") == "9000")
    }

    @Test("an authorised terminal writes the address and manages the PIN permanently")
    func writing() async throws {
        let card = try VirtualCard()
        let chain = try [CertificateRecipe.documentVerifier.certificate(), CertificateRecipe().certificate()]
        let terminal = try await OnlineTerminal.through(card, certificates: chain)
        #expect(try await terminal.status("00D69100 04 71020500") == "9000")
        #expect(try await terminal.status("00D69101 04 71020500") == "6B00")
        #expect(try await terminal.status("00D68400 04 64020C00") == "6982")
        #expect(try await terminal.status("002C020306363636363636") == "9000")
        #expect(try await terminal.status("002C020205313131313 1") == "6700")
        #expect(try await terminal.status("002C020206 41414141 4141") == "6A80")
        #expect(try await terminal.status("002C020206 313131313131") == "9000")
        #expect(try await terminal.status("00041003") == "9000")
        #expect(await card.eidState?.isDeactivated == true)
        #expect(try await terminal.status("00441003") == "9000")
        #expect(try await terminal.status("002C0303") == "9000")
        #expect(await card.eidState?.pukCounter == 10)
        await card.reset()
        try await OnlineTerminal(card).open(.can, "111111")
        await card.reset()
        let again = try await OnlineTerminal(card)
        try await again.open(.pin, "666666")
        #expect(try await again.present(chain) == "9000")
        #expect(try await again.authenticate() == "9000")
        #expect(try await again.readCardSecurity() == "9000")
        #expect(try await again.authenticateChip() == "9000")
        #expect(try await again.read(0x11).data == [0x71, 0x02, 0x05, 0x00])
    }
}
