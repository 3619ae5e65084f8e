// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import TestSupport
import Testing
import Text

@Suite("CV certificates", .timeLimit(.minutes(5)))
struct CVCertificateTests {
    private static func file(_ name: String) throws -> CVCertificate {
        try CVCertificate(try TestPKI.file("\(name).cvcert"))
    }

    @Test(
        "certificates are decoded, verified with their issuer, and encoded unchanged",
        arguments: [
            ("cvca", "cvca"), ("cvca-next", "cvca-next"), ("link", "cvca"), ("dv", "cvca"), ("dv-next", "cvca-next"),
            ("terminal", "dv"),
        ]
    )
    func chain(subject: String, issuer: String) throws {
        let certificate = try Self.file(subject)
        let authority = try Self.file(issuer)
        let curve = try Self.file("cvca").publicKey.curve
        #expect(certificate.authorityReference == authority.holderReference)
        let key = try authority.publicKey.key(inheriting: curve)
        #expect(try certificate.isSigned(by: key, .sha256))
        #expect(try !certificate.isSigned(by: key, .sha1))
        #expect(try !certificate.isSigned(by: try certificate.publicKey.key(inheriting: curve), .sha512))
        #expect(certificate.encoded == (try TestPKI.file("\(subject).cvcert")))
        #expect(try CVCertificate(commandData: certificate.commandData) == certificate)
        #expect(authority.chat.role.mayIssue(certificate.chat.role))
    }

    @Test("all fields of a certificate are read")
    func fields() throws {
        let terminal = try Self.file("terminal")
        #expect(terminal.holderReference == Array("DEATBADGED00001".utf8))
        #expect(terminal.effectiveDate == CVDate(year: 2024, month: 1, day: 1))
        #expect(terminal.expirationDate == CVDate(year: 2039, month: 12, day: 31))
        #expect(terminal.chat.terminalType == .authenticationTerminal)
        #expect(terminal.chat.role == .terminal)
        #expect(terminal.chat.rights.contains(.readGivenNames))
        #expect(!terminal.chat.rights.contains(.canAllowed))
        #expect(terminal.digest == .sha256)
        #expect(terminal.publicKey.curve == nil)
        let description = try DigestAlgorithm.sha256.hash(try TestPKI.file("description.der"))
        #expect(terminal.descriptionHash == description)
        for (hash, name) in [(terminal.sectorHashes.first, "sector-1"), (terminal.sectorHashes.second, "sector-2")] {
            let key = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("\(name).p8"))).publicKey
            let identifier = RestrictedIdentification.protocolID(.sha256)
            let object = try CVPublicKey(identifier: identifier, key, writesParameters: true).object
            #expect(try hash == DigestAlgorithm.sha256.hash(object.encoded))
        }
        let root = try Self.file("cvca")
        #expect(root.publicKey.curve == .brainpoolP256r1)
        #expect(root.descriptionHash == nil)
        #expect(root.sectorHashes.first == nil)
    }

    /// Builds the terminal's certificate with other fields and a wrong signature.
    private static func rebuilt(_ change: (inout [BERTLV]) throws -> Void) throws -> [UInt8] {
        var fields = try BERTLV(try file("terminal").body).children
        try change(&fields)
        return BERTLV(0x7F21, [BERTLV(0x7F4E, fields), BERTLV(0x5F37, [1, 2])]).encoded
    }

    /// A change to the fields of a valid certificate.
    struct Damage: Sendable, CustomTestStringConvertible {
        let what: String
        let change: @Sendable (inout [BERTLV]) throws -> Void

        var testDescription: String { what }
    }

    private static let nothing: [UInt8] = []

    static let damages = [
        Damage(what: "no version") { $0.removeFirst() },
        Damage(what: "another version") { $0[0].value = [1] },
        Damage(what: "a version of two bytes") { $0[0].value = [0, 0] },
        Damage(what: "fields in another order") { $0.swapAt(1, 3) },
        Damage(what: "a field twice") { $0.insert($0[1], at: 1) },
        Damage(what: "an unknown field at the end") { $0.append(BERTLV(0x5F50, [1])) },
        Damage(what: "no expiration date") { $0.remove(at: 6) },
        Damage(what: "a reference of 17 bytes") { $0[1].value = [UInt8](repeating: 0x41, count: 17) },
        Damage(what: "an empty reference") { $0[3].value = [] },
        Damage(what: "the 30th of February") { $0[5].value = [2, 4, 0, 2, 3, 0] },
        Damage(what: "a date of ASCII digits") { $0[5].value = Array("240101".utf8) },
        Damage(what: "a date of five bytes") { $0[6].value = [2, 4, 0, 1, 0] },
        Damage(what: "a CHAT of four bytes") { $0[4].value[$0[4].value.count - 6] = 4 },
        Damage(what: "a CHAT of an unknown kind") { $0[4] = BERTLV(0x7F4C, [BERTLV(0x06, [1]), BERTLV(0x53, [0])]) },
        Damage(what: "a CHAT without data") { $0[4] = BERTLV(0x7F4C, [BERTLV(0x06, [1])]) },
        Damage(what: "a key without a point") { $0[2] = BERTLV(0x7F49, [BERTLV(0x06, [1])]) },
        Damage(what: "a key with half its parameters") {
            $0[2] = BERTLV(0x7F49, [BERTLV(0x06, [1]), BERTLV(0x81, [1]), BERTLV(0x86, [4])])
        },
        Damage(what: "a point of 134 bytes") {
            $0[2] = BERTLV(0x7F49, [BERTLV(0x06, [1]), BERTLV(0x86, [UInt8](repeating: 4, count: 134))])
        },
        Damage(what: "an extension with another tag") { $0[7] = BERTLV(0x65, [BERTLV(0x30, Self.nothing)]) },
        Damage(what: "an extension without an identifier") { $0[7] = BERTLV(0x65, [BERTLV(0x73, Self.nothing)]) },
        Damage(what: "an extension cut off") { $0[7].value.removeLast() },
    ]

    @Test("a certificate with an invalid field is refused", arguments: damages)
    func damaged(damage: Damage) throws {
        let bytes = try Self.rebuilt(damage.change)
        let error = #expect(throws: Malformed.self) { try CVCertificate(bytes) }
        #expect(error != .unsupported && error != .invalidKey)
    }

    @Test("the rebuilt certificate is valid without a change")
    func undamaged() throws {
        #expect(try CVCertificate(try Self.rebuilt { _ in }).body == Self.file("terminal").body)
    }

    @Test("domain parameters that differ from a curve are refused")
    func forgedParameters() throws {
        let bytes = try TestPKI.file("cvca.cvcert")
        let generator = try #require(
            try BERTLV(try Self.file("cvca").body).children[2].children.first { $0.tag == 0x84 }
        )
        let position = try #require(bytes.indices.first { bytes[$0...].starts(with: generator.value) })
        var forged = bytes
        forged[position + 1 + 63] ^= 1
        #expect(throws: Malformed.unsupported) { try CVCertificate(forged) }
    }

    @Test("a point that is not on the curve is refused")
    func pointOffCurve() throws {
        let bytes = try Self.rebuilt { fields in
            var objects = try fields[2].children
            objects[1].value[5] ^= 1
            fields[2] = BERTLV(0x7F49, objects)
        }
        let certificate = try CVCertificate(bytes)
        #expect(throws: Malformed.invalidKey) { try certificate.publicKey.key(inheriting: .brainpoolP256r1) }
        #expect(throws: Malformed.unsupported) { try certificate.publicKey.key() }
    }

    @Test("a certificate of a wrong length is refused")
    func lengths() throws {
        let bytes = try TestPKI.file("terminal.cvcert")
        for count in bytes.indices {
            #expect(throws: Malformed.self) { try CVCertificate(Array(bytes.prefix(count))) }
        }
        #expect(throws: Malformed.self) { try CVCertificate(bytes + [0]) }
        let long = BERTLV(0x7F21, [UInt8](repeating: 0, count: CVCertificate.maximumLength)).encoded
        #expect(throws: Malformed("certificate too long")) { try CVCertificate(long) }
    }

    @Test("a change of one byte is refused or makes the signature wrong")
    func mutations() throws {
        let bytes = try TestPKI.file("dv.cvcert")
        let root = try Self.file("cvca").publicKey.key()
        for index in bytes.indices {
            for flip: UInt8 in [0x01, 0x80, 0xFF] {
                var mutant = bytes
                mutant[index] ^= flip
                guard let certificate = try? CVCertificate(mutant) else { continue }
                #expect(try !certificate.isSigned(by: root, .sha256), "byte \(index)")
            }
        }
    }
}

@Suite("Authorization templates, rights and dates", .timeLimit(.minutes(5)))
struct AuthorizationTests {
    @Test("a CHAT is encoded and decoded", arguments: CHAT.TerminalType.allCases, CHAT.Role.allCases)
    func roundTrip(type: CHAT.TerminalType, role: CHAT.Role) throws {
        for authorization: UInt64 in [0, 1, 0x23, .max] {
            let chat = CHAT(type, role, authorization: authorization)
            #expect(try CHAT(chat.object) == chat)
            #expect(chat.role == role)
        }
        #expect(CHAT(.inspectionSystem, role, authorization: .max).rights == [])
    }

    @Test("a role certifies only the role below it, and a root the next root")
    func roles() {
        let allowed: [(CHAT.Role, Set<CHAT.Role>)] = [
            (.cvca, [.cvca, .documentVerifierOfficial, .documentVerifierNonOfficial]),
            (.documentVerifierOfficial, [.terminal]), (.documentVerifierNonOfficial, [.terminal]), (.terminal, []),
        ]
        for (issuer, subjects) in allowed {
            #expect(Set(CHAT.Role.allCases.filter(issuer.mayIssue)) == subjects)
        }
    }

    @Test("the rights have the bits of the SDK's table")
    func bits() {
        let table: [(String, UInt8)] = [
            ("WriteAddress", 37), ("WriteCommunityID", 36), ("WriteResidencePermitI", 35),
            ("WriteResidencePermitII", 34), ("ResidencePermitII", 27), ("ResidencePermitI", 26), ("CommunityID", 25),
            ("Address", 24), ("BirthName", 20), ("Nationality", 17), ("PlaceOfBirth", 16), ("DateOfBirth", 15),
            ("DoctoralDegree", 14), ("ArtisticName", 13), ("FamilyName", 12), ("GivenNames", 11), ("ValidUntil", 10),
            ("IssuingCountry", 9), ("DocumentType", 8), ("PinManagement", 5), ("CanAllowed", 4), ("Pseudonym", 2),
            ("AddressVerification", 1), ("AgeVerification", 0),
        ]
        for (name, bit) in table { #expect(AccessRight(name: name)?.rawValue == bit, "\(name)") }
        #expect(AccessRight.allCases.compactMap(\.name).count == table.count)
        #expect(AccessRight(name: "Sex") == nil)
    }

    @Test("each data group has its rights")
    func groups() {
        #expect(AccessRight.reading(dataGroup: 4) == .readGivenNames)
        #expect(AccessRight.reading(dataGroup: 17) == .readAddress)
        #expect(AccessRight.reading(dataGroup: 22) == .readEmailAddress)
        #expect(AccessRight.reading(dataGroup: 0) == nil)
        #expect(AccessRight.reading(dataGroup: 23) == nil)
        #expect(AccessRight.writing(dataGroup: 17) == .writeAddress)
        #expect(AccessRight.writing(dataGroup: 22) == .writeEmailAddress)
        #expect(AccessRight.writing(dataGroup: 16) == nil)
        #expect(AccessRight.writing(dataGroup: 255) == nil)
        let all = AccessRights(rawValue: .max)
        #expect(all.rights == AccessRight.allCases)
        #expect(AccessRights(AccessRight.allCases) == all)
    }

    @Test("dates are existing days, and have an order")
    func dates() {
        #expect(CVDate(bytes: [2, 4, 0, 2, 2, 9]) == CVDate(year: 2024, month: 2, day: 29))
        for bytes: [UInt8] in [
            [2, 3, 0, 2, 2, 9], [2, 4, 1, 3, 0, 1], [2, 4, 0, 4, 3, 1], [2, 4, 0, 0, 1, 1], [2, 4, 0, 1, 0, 0],
            [1, 10, 0, 1, 0, 1], [],
        ] {
            #expect(CVDate(bytes: bytes) == nil)
        }
        let days = [[2, 3, 1, 2, 3, 1], [2, 4, 0, 1, 0, 1], [2, 4, 0, 1, 0, 2], [2, 4, 0, 2, 0, 1]].compactMap {
            CVDate(bytes: $0)
        }
        #expect(days == days.sorted())
        #expect(days.map(\.bytes).first == [2, 3, 1, 2, 3, 1])
    }

    @Test("auxiliary data are encoded and decoded, and keep the signed bytes")
    func auxiliaryData() throws {
        let data = AuxiliaryData([.dateOfBirth: Array("20000101".utf8), .communityID: [2, 0x76]])
        #expect(try AuxiliaryData(try BERTLV(data.encoded)) == data)
        #expect(AuxiliaryData([:]).encoded == [])
        let unknown = BERTLV(0x67, [BERTLV(0x73, [BERTLV(0x06, [1, 2]), BERTLV(0x53, [3])])])
        #expect(try AuxiliaryData(unknown).values.isEmpty)
        #expect(try AuxiliaryData(unknown).encoded == unknown.encoded)
        for wrong in [hex("6800"), hex("67027400"), hex("67027300"), hex("670101")] {
            #expect(throws: Malformed.self) { try AuxiliaryData(try BERTLV(wrong)) }
        }
    }
}

@Suite("Chip authentication and restricted identification", .timeLimit(.minutes(5)))
struct ChipProtocolTests {
    /// The answers are computed from the keys of the test PKI with Python's hashlib and cryptography.
    @Test("the results are those of another implementation")
    func knownAnswers() throws {
        let chip = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("sector-1.p8")))
        let terminal = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("terminal.p8")))
        let outcome = try ChipAuthentication.agree(
            chip,
            with: terminal.publicKey,
            ephemeral: terminal.publicKey,
            nonce: hex("0001020304050607"),
            cipher: .aes128
        )
        #expect(hex(outcome.token) == "B11FD2319AE62732")
        #expect(outcome.keys.encryption.withBytes { hex(Array($0)) } == "66DF92A5FF2645CD90E4A34E9AB987E9")
        let long = try ChipAuthentication.agree(
            chip,
            with: terminal.publicKey,
            ephemeral: terminal.publicKey,
            nonce: hex("0001020304050607"),
            cipher: .aes256
        )
        #expect(hex(long.token) == "4BB0C68EFAAB5FA8")
        let identifier = try RestrictedIdentification.identifier(chip, sector: terminal.publicKey, digest: .sha256)
        #expect(hex(identifier) == "CCE7940363815AA776E79F1C7A70D5589F0B7EEF9F7AAB809C6FBA9F53DA55BF")
    }

    @Test("each hash function and each cipher has its object identifier")
    func identifiers() {
        for digest in DigestAlgorithm.allCases {
            #expect(TerminalAuthentication.digest(of: TerminalAuthentication.protocolID(digest)) == digest)
            #expect(RestrictedIdentification.digest(of: RestrictedIdentification.protocolID(digest)) == digest)
        }
        #expect(TerminalAuthentication.protocolID(.sha256) == hex("04007F00070202020203"))
        #expect(RestrictedIdentification.protocolID(.sha256) == hex("04007F00070202050203"))
        #expect(ChipAuthentication.protocolID(.aes128) == hex("04007F00070202030202"))
        #expect(TerminalAuthentication.digest(of: hex("04007F00070202020206")) == nil)
        #expect(TerminalAuthentication.digest(of: []) == nil)
        for cipher in AES.allCases {
            #expect(ChipAuthentication.cipher(of: ChipAuthentication.protocolID(cipher)) == cipher)
        }
        #expect(ChipAuthentication.cipher(of: OID.chipAuthentication + [2]) == nil)
    }

    @Test("EF.CardSecurity has to be signed data with security infos")
    func cardSecurity() throws {
        #expect(throws: Malformed.self) { try CardSecurity([]) }
        #expect(throws: Malformed.self) { try CardSecurity(try TestPKI.file("csca.der")) }
        #expect(throws: Malformed.self) { try CardSecurity(hex("30030601 2A")) }
    }
}
