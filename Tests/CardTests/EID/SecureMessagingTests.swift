// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import TestSupport
import Testing
import Text

/// Session keys of constant bytes.
func sessionKeys(_ cipher: AES) -> SessionKeys {
    SessionKeys(
        encryption: Secret([UInt8](repeating: 0xE5, count: cipher.keyLength)),
        authentication: Secret([UInt8](repeating: 0x3A, count: cipher.keyLength))
    )
}

@Suite("Secure messaging", .timeLimit(.minutes(5)))
struct SecureMessagingTests {
    static let commands: [CommandAPDU] = [0, 1, 15, 16, 17, 223, 224, 255, 256, 4096].flatMap { count in
        [nil, 1, 255, 256, 257, 4096, 65_536].flatMap { le in
            [(0x00, 0xB0), (0x00, 0xB1), (0x10, 0x86), (0x00, 0x2C)].map { cla, ins in
                CommandAPDU(cla, ins, 0x03, 0xFF, data: [UInt8](repeating: 0x41, count: count), le: le)
            }
        }
    }

    @Test(
        "a command is unwrapped unchanged, with every key length, data length and instruction",
        arguments: AES.allCases
    )
    func commands(cipher: AES) throws {
        var terminal = SecureMessaging(sessionKeys(cipher))
        var chip = SecureMessaging(sessionKeys(cipher))
        for command in Self.commands {
            let wrapped = try terminal.wrap(command)
            #expect(wrapped.cla == command.cla | 0x0C)
            #expect([wrapped.ins, wrapped.p1, wrapped.p2] == [command.ins, command.p1, command.p2])
            #expect(wrapped.le == (wrapped.isExtended || command.isExtended ? 65_536 : 256))
            // Encoded and decoded, as on the wire.
            let received = try #require(CommandAPDU(bytes: wrapped.bytes))
            #expect(try chip.unwrap(received) == command)
            _ = try terminal.unwrap(try chip.wrap(ResponseAPDU(.ok)))
        }
    }

    @Test(
        "an answer is unwrapped unchanged, with every key length, data length and status",
        arguments: AES.allCases,
        [0xB0, 0xB1]
    )
    func answers(cipher: AES, ins: UInt8) throws {
        var terminal = SecureMessaging(sessionKeys(cipher))
        var chip = SecureMessaging(sessionKeys(cipher))
        for count in [0, 1, 15, 16, 17, 255, 256, 300, 65_000] {
            for status in [0x9000, 0x6282, 0x63C1, 0x6982] as [UInt16] {
                _ = try chip.unwrap(try terminal.wrap(CommandAPDU(0x00, ins, 0, 0, le: 256)))
                let answer = ResponseAPDU(data: [UInt8](repeating: 0x80, count: count), StatusWord(status))
                let wrapped = try chip.wrap(answer)
                #expect(wrapped.status == answer.status)
                let received = try #require(ResponseAPDU(bytes: wrapped.bytes))
                #expect(try terminal.unwrap(received) == answer)
            }
        }
    }

    @Test(
        "commands have the objects of the standard",
        arguments: [
            // class, instruction, data, Le, then tags and lengths of the objects and the last byte
            (0x00, 0x2C, 0, nil, "0C2C02030A 8E08 00"),
            (0x00, 0x2C, 6, nil, "0C2C02031D 8711 8E08 00"),
            (0x10, 0x86, 2, 256, "1C86020320 8711 9701 8E08 00"),
            (0x00, 0xB1, 4, 256, "0CB102031F 8510 9701 8E08 00"),
            (0x00, 0xB0, 0, 257, "0CB0020300000E 9702 8E08 0000"),
            (0x00, 0xD6, 256, nil, "0CD6020300011F 87820111 8E08 0000"),
        ] as [(UInt8, UInt8, Int, Int?, String)]
    )
    func objects(cla: UInt8, ins: UInt8, count: Int, le: Int?, shape: String) throws {
        var terminal = SecureMessaging(sessionKeys(.aes128))
        let command = CommandAPDU(cla, ins, 2, 3, data: [UInt8](repeating: 0x31, count: count), le: le)
        let bytes = try terminal.wrap(command).bytes
        var rest = bytes[...]
        for part in shape.split(separator: " ") {
            let expected = hex(String(part))
            #expect(Array(rest.prefix(expected.count)) == expected, "\(part) of \(hex(bytes))")
            rest = rest.dropFirst(expected.count)
            // Skip the value of an object.
            if part.first == "8" || part.first == "9" {
                let length = expected.count == 2 ? Int(expected[1]) : Int(expected[2]) << 8 | Int(expected[3])
                rest = rest.dropFirst(length)
            }
        }
        #expect(rest.isEmpty)
    }

    @Test("data in a secret and in an array give the same command")
    func secretData() throws {
        var one = SecureMessaging(sessionKeys(.aes256))
        var other = SecureMessaging(sessionKeys(.aes256))
        let pin = Array("654321".utf8)
        let header = CommandAPDU(0x00, 0x2C, 0x02, 0x03)
        let wrapped = try one.wrap(header, data: Secret(pin))
        #expect(try other.wrap(CommandAPDU(0x00, 0x2C, 0x02, 0x03, data: pin)) == wrapped)
        #expect(!hex(wrapped.bytes).contains(hex(pin)))
    }

    @Test("the same command is encrypted differently each time")
    func counter() throws {
        var terminal = SecureMessaging(sessionKeys(.aes128))
        var chip = SecureMessaging(sessionKeys(.aes128))
        let command = CommandAPDU(0x00, 0xB0, 0, 0, data: [1, 2, 3], le: 256)
        var seen: Set<[UInt8]> = []
        for _ in 0..<300 {  // more than one byte of the counter
            let wrapped = try terminal.wrap(command)
            #expect(seen.insert(wrapped.bytes).inserted)
            #expect(try chip.unwrap(wrapped) == command)
            let answer = try chip.wrap(ResponseAPDU(data: [9], .ok))
            #expect(seen.insert(answer.bytes).inserted)
            #expect(try terminal.unwrap(answer).data == [9])
        }
    }

    @Test("an answer with one changed bit is refused, and the channel is dead", arguments: AES.allCases)
    func tamperedAnswer(cipher: AES) throws {
        let good = try answer(cipher)
        for index in good.indices {
            for bit in [0x01, 0x80] as [UInt8] {
                var changed = good
                changed[index] ^= bit
                var terminal = SecureMessaging(sessionKeys(cipher))
                _ = try terminal.wrap(CommandAPDU(0x00, 0xB0, 0, 0, le: 256))
                let received = try #require(ResponseAPDU(bytes: changed))
                #expect(throws: ChipError.self, "byte \(index)") { try terminal.unwrap(received) }
                let isDead = terminal.isDead
                #expect(isDead)
                #expect(throws: ChipError.dead) { try terminal.wrap(CommandAPDU(0, 0xB0, 0, 0)) }
            }
        }
    }

    @Test("a command with one changed bit is refused, and the channel is dead")
    func tamperedCommand() throws {
        var terminal = SecureMessaging(sessionKeys(.aes128))
        let good = try terminal.wrap(CommandAPDU(0x00, 0x2C, 0x02, 0x03, data: Array("654321".utf8), le: 256)).bytes
        for index in good.indices.dropLast() where index != 4 {  // Lc and Le are not protected
            var changed = good
            changed[index] ^= 0x01
            guard let received = CommandAPDU(bytes: changed) else { continue }
            var chip = SecureMessaging(sessionKeys(.aes128))
            #expect(throws: ChipError.self, "byte \(index)") { try chip.unwrap(received) }
            let isDead = chip.isDead
            #expect(isDead)
        }
    }

    @Test("a truncated answer is refused")
    func truncatedAnswer() throws {
        let good = try answer(.aes128)
        for count in 2..<good.count {
            var terminal = SecureMessaging(sessionKeys(.aes128))
            _ = try terminal.wrap(CommandAPDU(0x00, 0xB0, 0, 0, le: 256))
            let received = try #require(ResponseAPDU(bytes: good.prefix(count - 2) + [0x90, 0x00]))
            #expect(throws: ChipError.self, "\(count) bytes") { try terminal.unwrap(received) }
        }
    }

    /// Objects in a wrong order or number; the right ones are 87, 99, 8E.
    static let rearranged: [(String, [UInt32], ChipError)] = [
        ("nothing", [], .missingObject),
        ("no checksum", [0x87, 0x99], .missingObject),
        ("no status", [0x87, 0x8E], .missingObject),
        ("checksum alone", [0x8E], .missingObject),
        ("status first", [0x99, 0x87, 0x8E], .missingObject),
        ("checksum first", [0x8E, 0x87, 0x99], .missingObject),
        ("data left out", [0x99, 0x8E], .wrongMAC),
        ("status twice", [0x87, 0x99, 0x99, 0x8E], .missingObject),
        ("checksum twice", [0x87, 0x99, 0x8E, 0x8E], .malformedMessage),
        ("data twice", [0x87, 0x87, 0x99, 0x8E], .missingObject),
    ]

    @Test("missing, repeated and rearranged objects are refused", arguments: rearranged)
    func rearrangedAnswer(name: String, tags: [UInt32], error: ChipError) throws {
        let objects = try BERTLV.sequence(try answer(.aes128).dropLast(2))
        let data = tags.flatMap { tag in objects.filter { $0.tag == tag }.flatMap(\.encoded) }
        var terminal = SecureMessaging(sessionKeys(.aes128))
        _ = try terminal.wrap(CommandAPDU(0x00, 0xB0, 0, 0, le: 256))
        #expect(throws: error) { try terminal.unwrap(ResponseAPDU(data: data, .ok)) }
    }

    @Test("an authentic answer with a wrong padding, indicator or status is refused")
    func authenticButWrong() throws {
        let status: [UInt8] = [0x90, 0x00]
        let wholeBlocks = [UInt8](repeating: 0x55, count: 16)
        let noPadding = try encrypted(wholeBlocks)
        let zeros = try encrypted([UInt8](repeating: 0, count: 16))
        let longPadding = try encrypted(wholeBlocks + [0x80] + [UInt8](repeating: 0, count: 31))
        let cases: [[BERTLV]] = [
            [BERTLV(0x87, [1] + noPadding), BERTLV(0x99, status)],
            [BERTLV(0x87, [1] + zeros), BERTLV(0x99, status)],
            [BERTLV(0x87, [1] + longPadding), BERTLV(0x99, status)],
            [BERTLV(0x87, [2] + noPadding), BERTLV(0x99, status)],
            [BERTLV(0x87, [1] as [UInt8]), BERTLV(0x99, status)],
            [BERTLV(0x87, [] as [UInt8]), BERTLV(0x99, status)],
            [BERTLV(0x87, [1] + noPadding.dropLast()), BERTLV(0x99, status)],
            [BERTLV(0x99, [0x63, 0xC0] as [UInt8])],
            [BERTLV(0x99, [0x90] as [UInt8])],
        ]
        for objects in cases {
            var terminal = SecureMessaging(sessionKeys(.aes128))
            _ = try terminal.wrap(CommandAPDU(0x00, 0xB0, 0, 0, le: 256))
            let message = counter(2) + padded(objects.flatMap(\.encoded))
            let mac = try CMAC.truncatedTag(message, key: sessionKeys(.aes128).authentication)
            let data = objects.flatMap(\.encoded) + BERTLV(0x8E, mac).encoded
            #expect(throws: ChipError.malformedMessage, "\(objects)") {
                try terminal.unwrap(ResponseAPDU(data: data, .ok))
            }
        }
    }

    @Test("a step out of turn makes the channel dead")
    func turns() throws {
        var terminal = SecureMessaging(sessionKeys(.aes128))
        _ = try terminal.wrap(CommandAPDU(0, 0xB0, 0, 0))
        #expect(throws: ChipError.dead) { try terminal.wrap(CommandAPDU(0, 0xB0, 0, 0)) }
        let isDead = terminal.isDead
        #expect(isDead)
        var replayed = SecureMessaging(sessionKeys(.aes128))
        let good = try #require(ResponseAPDU(bytes: try answer(.aes128)))
        _ = try replayed.wrap(CommandAPDU(0, 0xB0, 0, 0, le: 256))
        _ = try replayed.unwrap(good)
        _ = try replayed.wrap(CommandAPDU(0, 0xB0, 0, 0, le: 256))
        #expect(throws: ChipError.wrongMAC) { try replayed.unwrap(good) }
    }

    @Test("commands with a wrong class, Le or length are refused")
    func wrongCommands() {
        for command in [
            CommandAPDU(0x0C, 0xB0, 0, 0), CommandAPDU(0, 0xB0, 0, 0, le: 0), CommandAPDU(0, 0xB0, 0, 0, le: 65_537),
        ] {
            var terminal = SecureMessaging(sessionKeys(.aes128))
            #expect(throws: ChipError.malformedMessage) { try terminal.wrap(command) }
        }
        var terminal = SecureMessaging(sessionKeys(.aes128))
        let long = CommandAPDU(0, 0xD6, 0, 0, data: [UInt8](repeating: 0, count: 65_535))
        #expect(throws: ChipError.tooLong) { try terminal.wrap(long) }
    }

    @Test("random answers are refused")
    func randomAnswers() throws {
        var random = SplitMix64(seed: 0x5EC)
        for _ in 0..<FullTables.count(5000) {
            let data = (0..<Int.random(in: 0...60, using: &random)).map { _ in
                [0x87, 0x99, 0x8E, 0x08, 0x11, 0x01, 0x02, UInt8.random(in: 0...255, using: &random)]
                    .randomElement(using: &random) ?? 0
            }
            var terminal = SecureMessaging(sessionKeys(.aes128))
            _ = try terminal.wrap(CommandAPDU(0x00, 0xB0, 0, 0, le: 256))
            #expect(throws: ChipError.self) { try terminal.unwrap(ResponseAPDU(data: data, .ok)) }
        }
    }

    /// The first answer in a channel with the test keys: 20 bytes of data, status 9000.
    private func answer(_ cipher: AES) throws -> [UInt8] {
        var terminal = SecureMessaging(sessionKeys(cipher))
        var chip = SecureMessaging(sessionKeys(cipher))
        _ = try chip.unwrap(try terminal.wrap(CommandAPDU(0x00, 0xB0, 0, 0, le: 256)))
        return try chip.wrap(ResponseAPDU(data: [UInt8](repeating: 0x61, count: 20), .ok)).bytes
    }

    private func counter(_ value: UInt8) -> [UInt8] { [UInt8](repeating: 0, count: 15) + [value] }

    private func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [0x80] + [UInt8](repeating: 0, count: 15 - bytes.count % 16)
    }

    /// Blocks encrypted for the first answer of a channel.
    private func encrypted(_ blocks: [UInt8]) throws -> [UInt8] {
        let keys = sessionKeys(.aes128)
        let vector = try AES.encrypt(counter(2), key: keys.encryption)
        return try AES.encrypt(blocks, key: keys.encryption, initialVector: vector)
    }
}
