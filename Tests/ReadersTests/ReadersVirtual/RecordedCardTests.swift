// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import ReadersVirtual
import TestSupport
import Testing
import Text

/// A virtual card that plays a recording.
@Suite("Recorded cards", .timeLimit(.minutes(5)))
struct RecordedCardTests {
    private static let lines = """
        badged-recording 1
        atr 3b80800101
        > 00a4040007a000000247100100
        < 9000
        > 00b09e0000
        < 60045c0261759000
        > 00a4020c020101
        < 9000
        > 00b0000004
        < 61035f019000
        > 00b0000404
        < ff6282
        > 00a4040006a0000003080000
        < 6105
        > 00c0000005
        < 61034f01aa9000
        > 00ca006e00
        < 019000
        > 00ca006e00
        < 029000
        end
        """

    private static func card(_ text: String = lines) throws -> RecordedCard {
        RecordedCard(try CardRecording(text.utf8))
    }

    private static func ask(_ card: RecordedCard, _ command: String) -> String {
        Hex.encode(card.process(hex(command)))
    }

    @Test("the reader says the recorded answer to reset")
    func answerToReset() async throws {
        let card = try VirtualCard(Self.card())
        #expect(card.answerToReset == hex("3B80800101"))
        let contact = try VirtualCard(Self.card("badged-recording 1\natr 3f650000\nend\n"))
        #expect(contact.answerToReset == hex("3F650000"))
        #expect(contact.historicalBytes == [])
    }

    @Test("a command gets its answer, depending on what is selected")
    func places() throws {
        let card = try Self.card()
        // Nothing is selected yet.
        #expect(Self.ask(card, "00B09E0000") == "6a82")
        #expect(Self.ask(card, "00A4040007A000000247100100") == "9000")
        #expect(Self.ask(card, "00B09E0000") == "60045c0261759000")
        #expect(Self.ask(card, "00A4020C020101") == "9000")
        #expect(Self.ask(card, "00B0000004") == "61035f019000")
        // In the other application there is no such file.
        #expect(Self.ask(card, "00A4040006A0000003080000") == "6105")
        #expect(Self.ask(card, "00C0000005") == "61034f01aa9000")
        #expect(Self.ask(card, "00A4020C020101") == "6a82")
    }

    @Test("answers to one command come in their order, the last one again, and from the start after a reset")
    func repetitions() throws {
        let card = try Self.card()
        for _ in 1...2 {
            #expect(Self.ask(card, "00A4040006A0000003080000") == "6105")
            let answers = (1...3).map { _ in Self.ask(card, "00CA006E00") }
            #expect(answers == ["019000", "029000", "029000"])
            card.reset()
        }
    }

    @Test(
        "READ BINARY gets other parts of what was recorded",
        arguments: [
            ("00B0000000", "61035f01ff9000"), ("00B0000102", "035f9000"), ("00B00004000010", "ff6282"),
            ("00B0000010", "61035f01ff6282"), ("00B0000500", "6b00"), ("00B00000000000", "61035f01ff9000"),
        ]
    )
    func parts(command: String, answer: String) throws {
        let card = try Self.card()
        _ = Self.ask(card, "00A4040007A000000247100100")
        _ = Self.ask(card, "00A4020C020101")
        #expect(Self.ask(card, command) == answer)
    }

    @Test("the length of the answer may be another one")
    func lengths() throws {
        let card = try Self.card()
        #expect(Self.ask(card, "00A4040007A0000002471001") == "9000")
        #expect(Self.ask(card, "00A4040006A00000030800") == "6105")
        #expect(Self.ask(card, "00CA006E") == "9000")
        #expect(Self.ask(card, "00CA006E01") == "029000")
    }

    @Test(
        "a command that was not recorded is refused as by a card, and counted without its data",
        arguments: [
            ("00A4040001FF", "6a82"), ("00CA010100", "6a88"), ("0084000008", "6d00"),
            ("00200001083132333435363738", "6d00"),
            ("00A4", "6700"),
        ]
    )
    func unknown(command: String, answer: String) async throws {
        let card = try VirtualCard(Self.card())
        #expect(await card.exchange(hex(command)) == .answer(hex(answer)))
        let counters = JSON.object(await card.counters)
        let isCommand = command.utf8.count >= 8
        #expect(counters["notRecorded"]?.int == (isCommand ? 1 : 0))
        let names = counters["commandsNotRecorded"]?.array?.compactMap(\.string) ?? []
        #expect(names == (isCommand ? [String(command.prefix(8)).lowercased()] : []))
    }

    @Test("SET_CARD takes the text of a recording, or its lines")
    func description() async throws {
        let kinds = VirtualCardKinds([RecordedCardKind()])
        let lines = Self.lines.split(separator: "\n").map { JSON.string(String($0)) }
        for value in [JSON.string(Self.lines), .array(lines)] {
            let card = JSON.object([.init("kind", .string("recording")), .init("recording", value)])
            let made = try kinds.describe(simulator: nil, card: card).makeCard()
            #expect(await made.exchange(hex("00A4040007A000000247100100")) == .answer([0x90, 0x00]))
        }
    }

    @Test(
        "a wrong recording in SET_CARD is refused with its line",
        arguments: [
            (#"{}"#, "card.recording is missing"), (#"{"recording":7}"#, "card.recording is no text"),
            (#"{"recording":["a",7]}"#, "card.recording is no text"),
            (#"{"recording":""}"#, "card.recording has no line"),
            (#"{"recording":"badged-recording 1\natr 3b00\n> 00\n"}"#, "card.recording line 3: is no command"),
            (#"{"recording":"badged-recording 1\natr 3b00\nend\n","latencyMs":-1}"#, "card.latencyMs is not"),
        ]
    )
    func wrong(card: String, reason: String) throws {
        let json = try JSON(Array(card.utf8))
        let error = #expect(throws: Malformed.self) {
            _ = try VirtualCardKinds([RecordedCardKind()]).describe(simulator: nil, card: json)
        }
        #expect(error?.text.hasPrefix(reason) == true, "\(error?.text ?? "")")
    }
}
