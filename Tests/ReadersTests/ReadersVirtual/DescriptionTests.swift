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

@Suite("virtual card descriptions", .timeLimit(.minutes(5)))
struct DescriptionTests {
    @Test("without files and keys the card is the default card, otherwise it adds only the mandatory files")
    func files() async throws {
        let whole = try await OnlineTerminal.through(try VirtualCard())
        #expect(try await whole.read(0x04).status == .ok)
        for files in [[], [VirtualEIDDescription.File(fileID: 0x0105, shortFileID: 0x05, content: [0x65, 0x00])]] {
            let key = SecretBox(Secret(try Self.caKey()))
            let card = try VirtualCard(
                .card {
                    $0.files = files
                    $0.keys = [.init(id: 41, content: key)]
                }
            )
            let terminal = try await OnlineTerminal(card)
            try await terminal.open()
            let chain = try ["dv", "terminal"].map { try CVCertificate(try TestPKI.file("\($0).cvcert")) }
            #expect(try await terminal.present(chain) == "9000")
            #expect(try await terminal.authenticate() == "9000")
            #expect(try await terminal.readCardSecurity() == "9000")
            // The key differs from the key in EF.CardSecurity, so the token does not match.
            #expect(try await terminal.authenticateChip() == "wrong token")
        }
    }

    /// An arbitrary key on the curve of the card.
    private static func caKey() throws -> [UInt8] { try TestPKI.file("sector-1.p8") }

    @Test("a later file replaces any earlier file with the same short identifier, even a mandatory one")
    func lastWins() async throws {
        let card = try VirtualCard(
            .card {
                $0.files = [
                    .init(fileID: 0x2F00, shortFileID: 0x1E, content: [1]),
                    .init(fileID: 0x2F01, shortFileID: 0x1E, content: [2, 3]),
                ]
            }
        )
        #expect(try await card.send("00B09E0000") == "02039000")
        #expect(try await card.status("00A4020C022F01") == "9000")
        #expect(try await card.status("00A4020C022F00") == "9000")
        #expect(try await card.send("00B0000000") == "02039000")
    }

    @Test("the card uses the algorithms of its EF.CardAccess", arguments: [AES.aes192, .aes256])
    func otherPACE(cipher: AES) async throws {
        let parameters = PACEParameters(curve: .secp384r1, cipher: cipher)
        let info = BERTLV(
            0x30,
            [BERTLV(0x06, parameters.protocolID), BERTLV(0x02, [2]), BERTLV(0x02, [parameters.parameterID])]
        )
        let card = try VirtualCard(
            .card {
                $0.files = [.init(fileID: 0x011C, shortFileID: 0x1C, content: BERTLV(0x31, [info]).encoded)]
            }
        )
        let terminal = try await card.terminal()
        #expect(terminal.profile.cardAccess.pace == parameters)
        #expect(try await terminal.prove(.pin, "111111") == 0x63C2)
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
        #expect(try await terminal.changePIN(to: Secret("999999".utf8)) == .ok)
    }

    @Test("files with arbitrary content are accepted and announce no protocol")
    func garbageFiles() async throws {
        let card = try VirtualCard(
            .card {
                $0.files = [
                    .init(fileID: 0x011C, shortFileID: 0x1C, content: [0x31, 0x82]),
                    .init(fileID: 0x011D, shortFileID: 0x1D, content: []),
                ]
            }
        )
        #expect(try await card.status("0022C1A412800A04007F0007020204020283010384010D") == "6A80")
    }

    @Test("PIN, CAN and PUK can be set")
    func passwords() async throws {
        let card = try VirtualCard(
            .card {
                $0.pin = box("777777")
                $0.can = box("888888")
                $0.puk = box("9999999999")
            }
        )
        let terminal = try await card.terminal()
        #expect(try await terminal.prove(.pin, "123456") == 0x63C2)
        #expect(try await terminal.prove(.pin, "777777") == 0x9000)
        #expect(try await terminal.prove(.can, "888888") == 0x9000)
        #expect(try await terminal.prove(.puk, "9999999999") == 0x9000)
    }

    /// A wrong description and the expected error text.
    struct Wrong: Sendable, CustomTestStringConvertible {
        let text: String
        let change: @Sendable (inout VirtualEIDDescription) -> Void

        var testDescription: String { text }
    }

    static let wrong = [
        Wrong(text: "files[1].shortFileId is not from 01 to 1E") {
            $0.files = [
                .init(fileID: 1, shortFileID: 1, content: []), .init(fileID: 2, shortFileID: 0, content: []),
            ]
        },
        Wrong(text: "files[0].content is longer than 65535 bytes") {
            $0.files = [.init(fileID: 1, shortFileID: 1, content: [UInt8](repeating: 0, count: 65_536))]
        },
        Wrong(text: "keys[0].content is not a PKCS#8 key on a standardized elliptic curve") {
            $0.keys = [.init(id: 41, content: box("key"))]
        },
        Wrong(text: "keys[0].id is not from 1 to 255") { $0.keys = [.init(id: 256, content: box("key"))] },
        Wrong(text: "card.pin is not 6 digits") { $0.pin = box("12345") },
        Wrong(text: "card.transportPin is not 5 digits") { $0.transportPIN = box("123456") },
        Wrong(text: "card.can is not 6 digits") { $0.can = box("12345x") },
        Wrong(text: "card.puk is not 10 digits") { $0.puk = box("") },
        Wrong(text: "card.retryCounter is not from 0 to 3") { $0.retryCounter = 4 },
        Wrong(text: "card.pukCounter is not from 0 to 10") { $0.pukCounter = -1 },
        Wrong(text: "card.latencyMs is not from 0 to 60000") { $0.options.latency = 60_001 },
        Wrong(text: "card.faults[0].afterApdu is below 0") {
            $0.options.faults = [.init(afterAPDU: -1, action: .mute)]
        },
    ]

    @Test("an error names the wrong entry", arguments: wrong)
    func refused(wrong: Wrong) {
        #expect(throws: Malformed(wrong.text)) { try VirtualCard(.card(wrong.change)) }
    }

    @Test("another authority is accepted as the trust point, and invalid data is refused")
    func trustPoint() async throws {
        let next = try VirtualEIDKind(trustPoint: TestPKI.file("cvca-next.cvcert"))
            .describe(simulator: nil, card: nil).makeCard()
        let terminal = try await OnlineTerminal.through(next, chain: ["dv-next", "terminal"])
        #expect(terminal.pace?.certificationAuthorities.current == Array("DETESTeIDBG00002".utf8))
        for file in ["link.cvcert", "dv.cvcert", "cvca.p8"] {
            #expect(throws: Malformed.self) { try VirtualEIDKind(trustPoint: TestPKI.file(file)) }
        }
    }
}

@Suite("randomness of a virtual card", .timeLimit(.minutes(5)))
struct RandomnessTests {
    private static let commands = ["0084000008", "0022C1A412800A04007F0007020204020283010384010D", "10860000027C0000"]

    @Test("only the same seed repeats the same values")
    func seeds() async throws {
        func run(_ random: CardRandom) async throws -> [String] {
            let card = try VirtualCard(.card { $0.random = random })
            var answers: [String] = []
            for command in Self.commands { answers.append(try await card.send(command)) }
            return answers
        }
        #expect(try await run(.seeded([1])) == run(.seeded([1])))
        #expect(try await run(.seeded([1])) != run(.seeded([2])))
        #expect(try await run(.system) != run(.system))
    }

    /// One run with keys derived from the seed on both sides; nil when the seed gives no valid key.
    private static func run(_ seed: UInt16) async throws -> Points? {
        let seed = withUnsafeBytes(of: seed.bigEndian, Array.init)
        let card = try VirtualCard(.card { $0.random = .seeded(seed) })
        let channel = VirtualCardChannel(card)
        let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)
        let scalars = try [[1], [2]].map { try DigestAlgorithm.sha256.hash($0 + seed) }
        guard scalars.allSatisfy({ $0[0] < 0xA9 }) else { return nil }
        var terminal = PACE.Terminal(
            parameters,
            passwordKey: try PACE.passwordKey(Secret("500540".utf8), id: .can, cipher: .aes128),
            fixedKeys: PACE.FixedKeys(mapping: Secret(scalars[0]), ephemeral: Secret(scalars[1]))
        )
        _ = try await channel.transmit(.setPACE(parameters, .can))
        var points = Points()
        func step(_ cla: UInt8, _ data: [UInt8]) async throws -> [UInt8] {
            let answer = try await channel.transmit(CommandAPDU(cla, 0x86, 0, 0, data: data, le: 256))
            guard answer.status == .ok else { throw Unexpected("PACE: \(answer.status)") }
            return answer.data
        }
        // Two headers and the byte 04 precede the x coordinate.
        let mapping = try terminal.receiveNonce(try await step(0x10, PACE.Terminal.request))
        points.terminalMapping = mapping[5]
        let chipMapping = try await step(0x10, mapping)
        points.chipMapping = chipMapping[5]
        let token = try terminal.receiveEphemeral(try await step(0x10, try terminal.receiveMapping(chipMapping)))
        let outcome = try terminal.receiveToken(try await step(0x00, token))
        (points.chip, points.terminal) = (outcome.idPICC, outcome.idPCD)
        let secure = SecureChannel(outcome.secureMessaging(), over: channel)
        points.status = try await secure.exchange(.readBinary(shortFileID: 0x1C)).status
        return points
    }

    /// The first bytes of the exchanged x coordinates, and the compressed keys.
    private struct Points {
        var terminalMapping: UInt8 = 0xFF
        var chipMapping: UInt8 = 0xFF
        var terminal: [UInt8] = []
        var chip: [UInt8] = []
        var status = StatusWord(0)
    }

    /// A public key, and a seed that gives this key an x coordinate with a leading zero byte (one seed in 256).
    private static let leadingZeros: [(String, UInt16)] = [
        ("chip", 1043), ("chip", 2043), ("chip", 2279), ("chip mapping", 116), ("chip mapping", 410),
        ("chip mapping", 604), ("terminal", 321), ("terminal", 368), ("terminal", 638), ("terminal mapping", 329),
        ("terminal mapping", 374), ("terminal mapping", 719),
    ]

    @Test("PACE keeps the leading zero byte of an x coordinate", arguments: leadingZeros)
    func leadingZero(key: String, seed: UInt16) async throws {
        let points = try #require(try await Self.run(seed))
        let first: [String: UInt8] = [
            "chip": points.chip[0], "chip mapping": points.chipMapping, "terminal": points.terminal[0],
            "terminal mapping": points.terminalMapping,
        ]
        #expect(first[key] == 0)
        #expect(points.chip.count == 32)
        #expect(points.terminal.count == 32)
        #expect(points.status == .ok)
    }

    @Test("terminal and chip authentication keep the leading zero byte of the terminal's ephemeral key")
    func leadingZeroOfTheCommitment() async throws {
        let group = try Curve.brainpoolP256r1.group
        var number = [UInt8](repeating: 0, count: 32)
        var keys = 0
        while keys < 3 {
            number = try DigestAlgorithm.sha256.hash(number)
            guard number[0] < 0xA9 else { continue }
            let key = try ECPrivateKey(Secret(number), on: group)
            guard key.publicKey.compressed[0] == 0 else { continue }
            keys += 1
            let terminal = try await OnlineTerminal.through(try VirtualCard(), ephemeral: Secret(number))
            #expect(try await terminal.read(0x04).status == .ok)
        }
    }
}
