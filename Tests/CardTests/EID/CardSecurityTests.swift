// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816
import TestSupport
import Testing

@Suite("Reading EF.CardSecurity", .timeLimit(.minutes(5)))
struct CardSecurityTests {
    /// A SignedData with the SecurityInfos of the example card, without certificates and with no signature.
    static let file = BERTLV(
        0x30,
        [
            BERTLV(0x06, hex("2A864886F70D010702")),
            BERTLV(
                0xA0,
                [
                    BERTLV(
                        0x30,
                        [
                            BERTLV(0x02, [3]), BERTLV(0x31, [BERTLV]()),
                            BERTLV(
                                0x30,
                                [
                                    BERTLV(0x06, OID.bsi + [3, 2, 1]),
                                    BERTLV(0xA0, [BERTLV(0x04, exampleCardAccess)]),
                                ]
                            ),
                            BERTLV(0x31, [BERTLV]()),
                        ]
                    )
                ]
            ),
        ]
    ).encoded

    /// A card that answers each READ BINARY with what `answer` gives for the offset.
    private func card(_ answer: @escaping @Sendable (_ offset: Int) -> ResponseAPDU) -> TestCard {
        TestCard(interfere: { _, command in
            guard command.ins == 0xB0 else { return nil }
            return answer(command.p1 & 0x80 != 0 ? 0 : Int(command.p1) << 8 | Int(command.p2))
        })
    }

    private func read(_ card: TestCard) async throws(ChipError) -> CardSecurity {
        guard let profile = try? exampleProfile() else { throw .unsupported("no profile") }
        return try await EIDCard(channel: card, profile: profile).readCardSecurity()
    }

    @Test(
        "the file is read in pieces of any length, and reading stops when it is complete",
        arguments: [1, 10, 100, 4096]
    )
    func pieces(length: Int) async throws {
        let content = Self.file + [UInt8](repeating: 0, count: 500)
        let card = card { ResponseAPDU(data: Array(content.dropFirst($0).prefix(length)), .ok) }
        let security = try await read(card)
        #expect(security.content == exampleCardAccess)
        #expect(security.bytes == Self.file)
        #expect(card.commands.count == (Self.file.count + length - 1) / length)
        #expect(card.commands.first == "00B09D00000000")
    }

    @Test("the end of the file may come with its last bytes")
    func endOfFile() async throws {
        let card = card { _ in ResponseAPDU(data: Self.file, StatusWord(0x6282)) }
        #expect(try await read(card).bytes == Self.file)
    }

    @Test("reading a file without end is bounded in commands and bytes", arguments: [1, 256, 30_000])
    func endless(length: Int) async throws {
        let start: [UInt8] = [0x30, 0x83, 0xFF, 0xFF, 0xFF]
        let card = card { offset in
            ResponseAPDU(data: (offset..<offset + length).map { $0 < start.count ? start[$0] : 0 }, .ok)
        }
        await #expect(throws: ChipError.protocolViolation("EF.CardSecurity is too long")) { try await read(card) }
        #expect(card.commands.count <= 256)
        #expect(card.commands.count * length <= 0x7FFF + length)
    }

    @Test("a card that refuses the file, or a part of it, is an error")
    func refused() async throws {
        await #expect(throws: ChipError.status(StatusWord(0x6982))) {
            try await read(card { _ in ResponseAPDU(StatusWord(0x6982)) })
        }
        let broken = card { offset in
            offset == 0 ? ResponseAPDU(data: Array(Self.file.prefix(20)), .ok) : ResponseAPDU(StatusWord(0x6B00))
        }
        await #expect(throws: ChipError.protocolViolation("EF.CardSecurity cannot be read")) { try await read(broken) }
        await #expect(throws: ChipError.protocolViolation("EF.CardSecurity cannot be read")) {
            try await read(card { _ in ResponseAPDU(.ok) })
        }
    }

    @Test("no command is sent after the task is cancelled")
    func cancelled() async throws {
        let card = card { _ in
            withUnsafeCurrentTask { $0?.cancel() }
            return ResponseAPDU(data: [0x30], .ok)
        }
        let task = Task { try await read(card) }
        await #expect(throws: ChipError.card(.cancelled)) { try await task.value }
        #expect(card.commands.count == 1)
    }
}
