// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import ISO7816
import Taps
import TestSupport
import Testing
import Text

/// The dialogues with cards, with the answers of the vectors.
@Suite("Reading a PKOC card", .timeLimit(.minutes(5)))
struct PKOCReaderTests {
    private typealias Step = (command: [UInt8]?, answer: [UInt8])

    private static func today() throws -> CVDate { try #require(CVDate(year: 2026, month: 11, day: 22)) }

    private static let noData: Step = (hex("00CA7F6300"), hex("6A88"))

    private static func select() throws -> Step {
        let example = try pkocVectors().object("select")
        return (try example.bytes("command"), try example.bytes("answer"))
    }

    /// Reads a card that answers so. The random bytes are `random`, as often as wanted.
    private static func read(
        _ steps: [Step],
        _ site: PKOCSite = PKOCSite(),
        random: [UInt8]
    ) async throws -> PKOCReading {
        let card = ScriptedCard([try select()] + steps)
        let reader = try #require(try await PKOCReader.select(on: card))
        return try await reader.read(for: site, on: try today()) { count in
            Array((random + [UInt8](repeating: 0, count: 32)).prefix(count))
        }
    }

    /// The issuer of the vectors, or another one with its name.
    private static func site(isValidated: Bool, key: String = "issuer") throws -> PKOCSite {
        let cvc = try pkocVectors().object("cvc")
        let reference = Array(try #require(cvc["iir"]?.string).utf8)
        let issuer = PKOCIssuer(
            reference: reference,
            key: .elliptic(try ECPublicKey(try cvc.object(key).bytes("public"), on: .secp256r1))
        )
        return PKOCSite(issuers: [try #require(issuer)], isValidated: isValidated)
    }

    // MARK: SE V1

    private static func plain(_ name: String) throws -> (site: PKOCSite, transaction: [UInt8], step: Step) {
        let example = try pkocVectors().object(name)
        let command = try example.bytes("authenticate")
        let parsed = try #require(CommandAPDU(bytes: command))
        let objects = try BERTLV.sequence(parsed.data)
        let identifier = try #require(objects.first { $0.tag == PKOCTag.readerIdentifier }?.value)
        return (
            PKOCSite(site: Array(identifier.prefix(16)), location: Array(identifier.suffix(16))),
            try example.bytes("transactionIdentifier"), (command, try example.bytes("answer"))
        )
    }

    @Test(
        "SE V1: the command is that of the worked example, and its signature is right",
        arguments: ["workedExample", "own"]
    )
    func plain(name: String) async throws {
        let (site, transaction, step) = try Self.plain(name)
        let reading = try await Self.read([Self.noData, step], site, random: transaction)
        guard case .credential(let credential) = reading else { throw Unexpected("\(reading)") }
        #expect(credential.edition == .one)
        #expect(credential.transaction == transaction)
        #expect(try credential.key.compressed == pkocVectors().object(name).object("identifiers").bytes("bits256"))
        #expect(credential.certificate == nil)
    }

    @Test("SE V1: a signature of another transaction, as in a repeated answer, is no credential")
    func replayed() async throws {
        let (site, transaction, step) = try Self.plain("own")
        let reading = try await Self.read([Self.noData, (nil, step.answer)], site, random: transaction.reversed())
        #expect(reading == .failed(.wrongSignature, .one))
    }

    @Test("SE V1: objects may come in another order, and unknown ones are skipped")
    func order() async throws {
        let (site, transaction, step) = try Self.plain("own")
        let objects = try BERTLV.sequence(step.answer.dropLast(2))
        let answer = [BERTLV(0xF8, [1, 2, 3])] + objects.reversed()
        let reading = try await Self.read(
            [Self.noData, (nil, answer.flatMap(\.encoded) + [0x90, 0x00])],
            site,
            random: transaction
        )
        guard case .credential = reading else { throw Unexpected("\(reading)") }
    }

    @Test("SE V1: an answer with one bit changed, cut or repeated is no credential")
    func changedAnswer() async throws {
        let (site, transaction, step) = try Self.plain("own")
        for answer in damaged(Array(step.answer.dropLast(2))) {
            let reading = try await Self.read([Self.noData, (nil, answer + [0x90, 0x00])], site, random: transaction)
            guard case .failed = reading else { throw Unexpected("\(hex(answer))") }
        }
    }

    @Test(
        "SE V1: a refusal of the card is reported as a refusal, and the loss of the card is an error",
        arguments: ["6985", "6F00", "6700"]
    )
    func refused(status: String) async throws {
        let reading = try await Self.read([Self.noData, (nil, hex(status))], random: [])
        #expect(reading == .failed(.refused, .one))
        await #expect(throws: CardError.removed) { try await Self.read([Self.noData], random: []) }
    }

    @Test(
        "the version of AUTHENTICATE is 1.0 where it is listed, else the first 1.x",
        arguments: [
            ("5C020100", "0100"), ("5C0401010100", "0100"), ("5C020101", "0101"), ("5C0402000102", "0102"),
            ("5C020200", nil), ("5C03010001", nil), ("5C00", nil), ("", nil), ("5C0201005C020100", nil),
        ]
    )
    func versions(answer: String, version: String?) {
        #expect(PKOCVersions(selectAnswer: hex(answer))?.forAuthenticate == version.map { hex($0) })
    }

    @Test(
        "a card that refuses SELECT or answers without a list is of another kind",
        arguments: ["6A82", "9000", "6F009000"]
    )
    func otherCard(answer: String) async throws {
        #expect(try await PKOCReader.select(on: ScriptedCard([(nil, hex(answer))])) == nil)
    }

    @Test("each reading draws new random bytes")
    func fresh() async throws {
        var commands: Set<[UInt8]> = []
        for _ in 1...4 {
            let card = ScriptedCard([try Self.select(), Self.noData, (nil, hex("6985"))])
            let reader = try #require(try await PKOCReader.select(on: card))
            _ = try await reader.read(for: PKOCSite(), on: try Self.today())
            commands.insert(try #require(await card.commands.last))
        }
        #expect(commands.count == 4)
    }

    // MARK: SE V2

    /// The steps of SE V2 with the certificate in one answer or in two.
    private static func certified(chained: Bool = false) throws -> (challenge: [UInt8], steps: [Step]) {
        let example = try pkocVectors().object("seV2")
        func step(_ json: JSON) throws -> Step { (try json.bytes("command"), try json.bytes("answer")) }
        let get = try example.object("getCvc")
        let authenticate = try example.object("internalAuthenticate")
        let certificate: [Step]
        if chained {
            certificate = try #require(get["chained"]?.array).map(step)
        } else {
            certificate = [(try get.bytes("command"), try get.bytes("whole"))]
        }
        let challenge = try #require(CommandAPDU(bytes: try authenticate.bytes("command"))).data
        return (challenge, [try step(try example.object("info"))] + certificate + [try step(authenticate)])
    }

    @Test("SE V2: a certificate of a known issuer, in one part or two", arguments: [false, true])
    func certified(chained: Bool) async throws {
        let (challenge, steps) = try Self.certified(chained: chained)
        let reading = try await Self.read(steps, try Self.site(isValidated: true), random: challenge)
        guard case .credential(let credential) = reading else { throw Unexpected("\(reading)") }
        #expect(credential.edition == .two)
        #expect(credential.transaction == challenge)
        #expect(credential.certificateProblem == nil)
        #expect(credential.certificate?.subjectReference == Array("CARD000000000042".utf8))
    }

    @Test("SE V2: without validated mode a certificate of an unknown issuer is reported with its problem")
    func unknownIssuer() async throws {
        let (challenge, steps) = try Self.certified()
        guard case .credential(let credential) = try await Self.read(steps, random: challenge) else {
            throw Unexpected("no credential")
        }
        #expect(credential.certificateProblem == .unknownIssuer)
    }

    @Test("validated mode: a certificate that does not count is no credential, and SE V1 does not follow")
    func validated() async throws {
        let (challenge, steps) = try Self.certified()
        let unknown = PKOCSite(isValidated: true)
        #expect(try await Self.read(steps, unknown, random: challenge) == .failed(.unknownIssuer, .two))
        let wrong = try Self.site(isValidated: true, key: "subject")
        #expect(try await Self.read(steps, wrong, random: challenge) == .failed(.wrongCertificateSignature, .two))
        let site = try Self.site(isValidated: true)
        // No further answer is in the script, so another command would be an error.
        #expect(try await Self.read([Self.noData], site, random: challenge) == .failed(.noCertificate, .two))
        for (index, problem) in [(1, PKOCProblem.malformed), (2, .malformed)] {
            var garbled = Array(steps[...index])
            garbled[index].answer = hex("9E03010203 9000")
            #expect(try await Self.read(garbled, site, random: challenge) == .failed(problem, .two))
            garbled[index].answer = hex("6F00")
            #expect(try await Self.read(garbled, site, random: challenge) == .failed(.refused, .two))
        }
    }

    @Test(
        "SE V2: a wrong signature is reported as wrong in both modes, and SE V1 does not follow",
        arguments: [false, true]
    )
    func wrongSignature(isValidated: Bool) async throws {
        var (challenge, steps) = try Self.certified()
        challenge[0] ^= 1
        steps[2].command = nil
        let site = try Self.site(isValidated: isValidated)
        #expect(try await Self.read(steps, site, random: challenge) == .failed(.wrongSignature, .two))
    }

    @Test("without validated mode SE V1 follows when the card does not finish SE V2")
    func fallback() async throws {
        let (site, transaction, plain) = try Self.plain("own")
        var steps = try Self.certified().steps.prefix(2)
        steps[1].answer = hex("6A88")
        let reading = try await Self.read(steps + [plain], site, random: transaction)
        guard case .credential(let credential) = reading else { throw Unexpected("\(reading)") }
        #expect(credential.edition == .one)
    }
}
