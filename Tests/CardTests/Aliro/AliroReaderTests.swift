// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ISO7816
import Taps
import TestSupport
import Testing
import Text

/// The dialogues with cards, with the commands and answers of the vectors.
@Suite("Reading a card with Aliro", .timeLimit(.minutes(5)))
struct AliroReaderTests {
    private static let ok: [UInt8] = [0x90, 0x00]

    @Test(
        "standard phase: each command is that of the vector, and the key of the card is proven",
        arguments: ["standard", "rich", "draft"]
    )
    func standard(name: String) async throws {
        let vector = try Vector(name)
        let (reading, sent) = try await vector.read(Self.withoutSignature(vector.steps))
        let credential = try #require(reading.credential)
        #expect(credential.phase == .standard)
        #expect(try credential.key == Vector.card)
        #expect(try credential.transaction == vector.tap.bytes("transaction"))
        let bond = try #require(credential.bond).bytes.withBytes { Array($0) }
        #expect(try bond == Vector.card.uncompressed + vector.tap.bytes("persistent"))
        // ECDSA has a random nonce, so the signature is verified, and the other bytes are compared.
        let auth1 = try #require(CommandAPDU(bytes: sent[2]))
        let expected = try #require(vector.steps[2].command)
        #expect(sent[2].prefix(10) == expected.prefix(10) && sent[2].count == expected.count)
        let reader = try ECPublicKey(try Vector.all().object("reader").bytes("public"), on: .secp256r1)
        #expect(
            try ECDSA.verify(
                Array(auth1.data.suffix(64)),
                of: try vector.tap.bytes("signedByReader"),
                with: reader,
                digest: .sha256
            )
        )
        #expect(sent.count == 4)
    }

    /// The signature of the reader in AUTH1 differs each time.
    private static func withoutSignature(_ steps: [Vector.Step]) -> [Vector.Step] {
        steps.map { step in
            (step.command?[1] == AliroCommand.auth1Instruction ? nil : step.command, step.answer)
        }
    }

    @Test("fast phase: a card that was read before is recognised in AUTH0, and all commands are those of the vector")
    func fast() async throws {
        let vector = try Vector("fast")
        let (reading, sent) = try await vector.read(vector.steps, bonds: [try Vector.bond()])
        let credential = try #require(reading.credential)
        #expect(credential.phase == .fast && credential.bond == nil)
        #expect(try credential.key == Vector.card)
        #expect(sent == vector.steps.compactMap(\.command))
    }

    @Test("fast phase: a card that has forgotten the shared key is read in the standard phase")
    func forgotten() async throws {
        let vector = try Vector("forgotten")
        let (reading, sent) = try await vector.read(Self.withoutSignature(vector.steps), bonds: [try Vector.bond()])
        let credential = try #require(reading.credential)
        #expect(credential.phase == .standard && credential.bond != nil)
        #expect(sent.count == 4)
    }

    @Test("the fast phase is not asked for without a card that was read before, or if it is switched off")
    func noFast() async throws {
        let vector = try Vector("standard")
        let bonds = [try Vector.bond()]
        let (reading, _) = try await vector.read(
            Self.withoutSignature(vector.steps),
            try Vector.site(allowsFast: false),
            bonds: bonds
        )
        #expect(reading.credential?.phase == .standard)
    }

    @Test("fast phase: a changed cryptogram, and a cryptogram of another tap, are no credential")
    func changedCryptogram() async throws {
        let vector = try Vector("fast")
        let bonds = [try Vector.bond()]
        for answer in changed(Array(vector.steps[1].answer.dropLast(2))) {
            let steps = [vector.steps[0], (nil, answer + Self.ok), (nil, hex("6985")), (nil, hex("6985"))]
            #expect(try await vector.read(steps, bonds: bonds).reading.problem != nil)
        }
        let other = try Vector("standard")
        let steps = [vector.steps[0], (nil, vector.steps[1].answer), (nil, hex("6985"))]
        #expect(try await other.read(steps, bonds: bonds).reading.problem == .refused)
    }

    @Test("AUTH1: an answer with one bit changed, cut or repeated is no credential")
    func changedAnswer() async throws {
        let vector = try Vector("standard")
        for answer in damaged(Array(vector.steps[2].answer.dropLast(2))) {
            let steps =
                Array(vector.steps[..<2]) + [(nil, answer + Self.ok), (AliroCommand.controlFlow.bytes, Self.ok)]
            let (reading, sent) = try await vector.read(steps)
            #expect(reading.problem == .wrongEncryption)
            // The phone gets a message that the tap has failed.
            #expect(sent.last == AliroCommand.controlFlow.bytes)
        }
        // The answer of another tap.
        let other = try Vector("rich")
        let steps = Array(vector.steps[..<2]) + [(nil, other.steps[2].answer)]
        #expect(try await vector.read(steps).reading.problem == .wrongEncryption)
    }

    @Test("AUTH0: an answer with one bit changed, cut or repeated never leads to a credential")
    func changedOpening() async throws {
        let vector = try Vector("standard")
        for answer in damaged(Array(vector.steps[1].answer.dropLast(2))) {
            let steps = [vector.steps[0], (nil, answer + Self.ok), (nil, vector.steps[2].answer), (nil, Self.ok)]
            let problem = try await vector.read(steps).reading.problem
            #expect(problem == .malformed || problem == .wrongEncryption, "\(hex(answer))")
        }
    }

    // MARK: What a card shows inside the channel

    /// Reads a card that answers AUTH1 with this plain text.
    private static func read(_ objects: [BERTLV], _ site: AliroSite? = nil) async throws -> (AliroReading, [[UInt8]]) {
        let vector = try Vector("standard")
        let sealed = try AuthenticatedAES.gcm.seal(
            Secret(objects.flatMap(\.encoded)),
            key: Secret(try vector.tap.bytes("cardKey")),
            nonce: [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]
        )
        let result = try await vector.read(Array(vector.steps[..<2]) + [(nil, sealed + ok), (nil, ok)], site)
        return (result.reading, result.sent)
    }

    private static func objects(key: String = "card", signs: [UInt8]? = nil) throws -> [BERTLV] {
        let vector = try Vector("standard")
        let card = try Vector.all().object(key)
        let signature = try ECDSA.sign(
            try signs ?? vector.tap.bytes("signedByCard"),
            with: try Vector.privateKey(try card.bytes("private")),
            digest: .sha256
        )
        return [
            BERTLV(AliroTag.publicKey, try card.bytes("public")), BERTLV(AliroTag.signature, signature),
            BERTLV(AliroTag.signalling, [0, 0]),
        ]
    }

    @Test("a signature of other bytes, of the reader's bytes or by another key is reported as wrong")
    func wrongSignature() async throws {
        let vector = try Vector("standard")
        let other = try Vector("rich").tap.bytes("signedByCard")
        for signs in [other, try vector.tap.bytes("signedByReader"), []] {
            let (reading, sent) = try await Self.read(try Self.objects(signs: signs))
            #expect(reading.problem == .wrongSignature)
            #expect(sent.last?[1] == AliroCommand.exchangeInstruction)
        }
        var mixed = try Self.objects()
        mixed[0] = try Self.objects(key: "reader")[0]
        #expect(try await Self.read(mixed).0.problem == .wrongSignature)
    }

    @Test("objects may come in another order, and unknown ones are skipped")
    func order() async throws {
        let objects = [BERTLV(0xBF01, [1, 2, 3])] + (try Self.objects()).reversed()
        #expect(try await Self.read(objects).0.credential != nil)
    }

    @Test("a missing, repeated or wrong object is malformed, and a card without a key is unsupported")
    func malformed() async throws {
        let good = try Self.objects()
        var point = good[0]
        point.value[64] ^= 1
        let cases: [([BERTLV], AliroProblem)] = [
            ([good[0]], .malformed), ([good[1]], .malformed), ([good[0]] + good, .malformed),
            ([good[1]] + good, .malformed), ([point, good[1]], .malformed),
            ([good[0], BERTLV(AliroTag.signature, [1])], .malformed),
            (good + [BERTLV(AliroTag.signalling, [0, 0, 0])], .malformed),
            (good + [BERTLV(AliroTag.credentialTime, [0])], .malformed),
            (good + [BERTLV(AliroTag.keySlot, [0])], .malformed),
            ([good[1], BERTLV(AliroTag.keySlot, [UInt8](repeating: 0, count: 8))], .unsupported),
        ]
        for (objects, problem) in cases {
            #expect(try await Self.read(objects).0.problem == problem, "\(objects.map(\.tag))")
        }
    }

    @Test("validated mode: only a known key is a credential, in both phases")
    func validated() async throws {
        let card = try Vector.card
        let known = try Vector.site(credentials: [card], isValidated: true)
        let unknown = try Vector.site(isValidated: true)
        #expect(try await Self.read(try Self.objects(), known).0.credential?.key == card)
        #expect(try await Self.read(try Self.objects(), unknown).0.problem == .unknownKey)
        let vector = try Vector("fast")
        let bonds = [try Vector.bond()]
        #expect(try await vector.read(vector.steps, known, bonds: bonds).reading.credential?.phase == .fast)
        let steps = Array(vector.steps[..<2]) + [(nil, Self.ok)]
        #expect(try await vector.read(steps, unknown, bonds: bonds).reading.problem == .unknownKey)
    }

    // MARK: Cards that refuse or leave

    @Test("a refusal of the card is reported as a refusal", arguments: [1, 2], ["6985", "6982", "6F00", "6700"])
    func refused(step: Int, status: String) async throws {
        let vector = try Vector("standard")
        let (reading, sent) = try await vector.read(Array(vector.steps[..<step]) + [(nil, hex(status))])
        #expect(reading.problem == .refused)
        #expect(sent.count == step + 1)
    }

    @Test("the loss of the card is an error in AUTH0 and AUTH1, and has no effect after the proof")
    func cut() async throws {
        let vector = try Vector("standard")
        for count in 1...2 {
            await #expect(throws: CardError.removed) { try await vector.read(Array(vector.steps[..<count])) }
        }
        let proof = Self.withoutSignature(Array(vector.steps[..<3]))
        #expect(try await vector.read(proof).reading.credential != nil)
        for answer in ["", "61FF", "6F00", "00"] {
            let (reading, sent) = try await vector.read(proof + [(nil, hex(answer))])
            #expect(reading.credential != nil)
            // No GET RESPONSE follows.
            #expect(sent.count == 4)
        }
    }

    @Test("an answer to AUTH1 in parts is joined")
    func parts() async throws {
        let vector = try Vector("standard")
        let data = Array(vector.steps[2].answer.dropLast(2))
        let rest = UInt8(data.count - 100)
        var steps = Array(vector.steps[..<2])
        steps.append((nil, Array(data.prefix(100)) + [0x61, rest]))
        steps.append((hex("00C00000") + [rest], Array(data.dropFirst(100)) + Self.ok))
        #expect(try await vector.read(steps).reading.credential != nil)
    }

    @Test("each reading has a new transaction and a new ephemeral key")
    func fresh() async throws {
        let vector = try Vector("standard")
        var openings: Set<[UInt8]> = []
        var keys: Set<[UInt8]> = []
        for _ in 1...4 {
            let card = ScriptedCard([vector.steps[0], (nil, hex("6985"))])
            let reader = try #require(try await AliroReader.select(on: card))
            _ = try await reader.read(for: try Vector.site())
            let sent = try #require(await card.commands.last.flatMap { CommandAPDU(bytes: $0) })
            let opening = try #require(AliroOpening(data: sent.data))
            openings.insert(opening.transaction)
            keys.insert(opening.ephemeral.uncompressed)
        }
        #expect(openings.count == 4 && keys.count == 4)
    }

    // MARK: SELECT

    private static let name = "8409A000000909ACCE5501"

    @Test(
        "the version of AUTH0 is 1.0 where it is listed, else 0.9",
        arguments: [
            ("0100", "0100"), ("00090100", "0100"), ("0009", "0009"), ("01010009", "0009"), ("0200", nil),
            ("0101", nil),
        ]
    )
    func versions(list: String, version: String?) {
        let versions = BERTLV(AliroTag.versions, hex(list)).encoded
        let answer = BERTLV(AliroTag.file, hex(Self.name) + BERTLV(AliroTag.proprietary, versions).encoded).encoded
        #expect(AliroApplication(selectAnswer: answer)?.version == version.map { hex($0) })
    }

    @Test("a card without a common version is reported as unsupported, and gets no further command")
    func noVersion() async throws {
        let answer = hex("6F11 8409A000000909ACCE5501 A5045C020200 9000")
        let (reading, sent) = try await Vector("standard").read([(nil, answer)])
        #expect(reading.problem == .unsupported && sent.count == 1)
    }

    @Test("A5 is taken as the card has sent it, also with a long form of its length, and objects beside 6F are skipped")
    func proprietary() throws {
        let answer = hex("6F15 8409A000000909ACCE5501 A5820006 80005C020100 B703010203")
        let application = try #require(AliroApplication(selectAnswer: answer))
        #expect(application.proprietary == hex("A5820006 80005C020100"))
        #expect(application.versions == [0x0100])
    }

    @Test(
        "a card with a malformed answer to SELECT is of another kind",
        arguments: [
            "", "9000", "6A82", "6F00", "6F0B8409A000000909ACCE5501", "6F118409A000000909ACCE5502A5045C020100",
            "6F0F8409A000000909ACCE5501A5025C00", "6F108409A000000909ACCE5501A5035C0101",
            "6F06A5045C020100", "5C020100", "6F118409A000000909ACCE5501A5045C0201",
            "6F158409A000000909ACCE5501A5085C0201005C020100",
        ]
    )
    func otherCard(answer: String) async throws {
        #expect(AliroApplication(selectAnswer: hex(answer)) == nil)
        let reply = hex(answer) + (answer.count < 6 ? [] : Self.ok)
        // A refusal other than "not found" may be disturbed, so the card is asked once more.
        let card = ScriptedCard([(nil, reply), (nil, reply)])
        // Without a status word it is no answer at all.
        if hex(answer).count >= 2 { #expect(try await AliroReader.select(on: card) == nil) }
    }

    @Test("more versions than a card can have are refused")
    func manyVersions() {
        let versions = BERTLV(AliroTag.versions, [UInt8](repeating: 1, count: 34)).encoded
        let answer = BERTLV(AliroTag.file, hex(Self.name) + BERTLV(AliroTag.proprietary, versions).encoded).encoded
        #expect(AliroApplication(selectAnswer: answer) == nil)
    }

    @Test("a written bond is read again, and changed bytes are refused")
    func bond() throws {
        let bytes = try Vector.bond().bytes.withBytes { Array($0) }
        #expect(bytes.count == AliroBond.count)
        #expect(Self.bond(bytes)?.key == (try Vector.card))
        #expect(Self.bond(bytes + [0]) == nil)
        #expect(Self.bond(Array(bytes.dropLast())) == nil)
        var changed = bytes
        changed[64] ^= 1
        #expect(Self.bond(changed) == nil)
    }

    private static func bond(_ bytes: [UInt8]) -> AliroBond? { AliroBond(Secret(bytes)) }
}
