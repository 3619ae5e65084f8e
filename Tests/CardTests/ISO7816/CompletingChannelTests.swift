// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import TestSupport
import Testing

/// Answers commands in their order.
private actor AnswerList: CardChannel {
    private var answers: [String]
    private(set) var commands: [String] = []
    private let repeatsLast: Bool

    init(_ answers: [String], repeatsLast: Bool = false) { (self.answers, self.repeatsLast) = (answers, repeatsLast) }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        commands.append(hex(command.bytes))
        guard let text = answers.first, let answer = ResponseAPDU(bytes: hex(text)) else { throw .mute }
        if answers.count > 1 || !repeatsLast { answers.removeFirst() }
        return answer
    }
}

@Suite("Answers in parts")
struct CompletingChannelTests {
    private let select = CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: [0xA0], le: 256)

    @Test("61xx fetches the rest, in as many parts as there are")
    func rest() async throws {
        let card = AnswerList(["01026102", "03046101", "059000"])
        let answer = try await CompletingChannel(card).transmit(select)
        #expect(answer == ResponseAPDU(data: [1, 2, 3, 4, 5], .ok))
        #expect(await card.commands == ["00A4040001A000", "00C0000002", "00C0000001"])
    }

    @Test("6Cxx repeats a command once with the right length")
    func length() async throws {
        let card = AnswerList(["6C05", "01020304059000"])
        let answer = try await CompletingChannel(card).transmit(CommandAPDU(0x00, 0xB0, 0x00, 0x00, le: 256))
        #expect(answer.data == [1, 2, 3, 4, 5])
        #expect(await card.commands == ["00B0000000", "00B0000005"])
        let stubborn = AnswerList(["6C05"], repeatsLast: true)
        #expect(try await CompletingChannel(stubborn).transmit(select).status == StatusWord(0x6C05))
        #expect(await stubborn.commands.count == 2)
    }

    @Test(
        "a command without expected data, or with secure messaging, is not repeated",
        arguments: [
            CommandAPDU(0x00, 0x20, 0x00, 0x00, data: [0x31]),
            CommandAPDU(0x0C, 0x20, 0x00, 0x00, data: [0x31], le: 256),
        ]
    )
    func notRepeated(command: CommandAPDU) async throws {
        let card = AnswerList(["6C05"], repeatsLast: true)
        #expect(try await CompletingChannel(card).transmit(command).status == StatusWord(0x6C05))
        #expect(await card.commands.count == 1)
    }

    @Test("an answer that does not end is an error", arguments: ["6100", "016100"])
    func endless(part: String) async {
        let card = AnswerList([part], repeatsLast: true)
        await #expect(throws: CardError.self) { _ = try await CompletingChannel(card).transmit(self.select) }
        #expect(await card.commands.count <= 257)
    }

    @Test("other answers are passed on as they are", arguments: ["9000", "01029000", "6A82", "63C2", "0182"])
    func other(text: String) async throws {
        let card = AnswerList([text])
        #expect(try await CompletingChannel(card).transmit(select).bytes == hex(text))
        #expect(await card.commands.count == 1)
    }
}
