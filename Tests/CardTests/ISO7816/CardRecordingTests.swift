// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import TestSupport
import Testing
import Text

/// The lines of a recording. docs/recordings.md.
@Suite("Recordings of cards", .timeLimit(.minutes(5)))
struct CardRecordingTests {
    private static let start = "badged-recording 1\natr 3b8001\n"

    @Test("a recording is the same after it is written and read")
    func roundTrip() throws {
        let recording = CardRecording(
            answerToReset: [0x3B, 0x80, 0x01],
            kind: "document",
            exchanges: [
                .init(hex("00A4040C07A0000002471001"), hex("9000")),
                .init(hex("00B09E0000"), [UInt8](repeating: 0x60, count: 300) + hex("6282")),
            ]
        )
        #expect(try CardRecording(recording.text.utf8) == recording)
    }

    @Test("what is before the header and after the end, comments, empty lines and line ends of Windows do not count")
    func comments() throws {
        let text =
            "badged report 1\n  > 00\n\n" + Self.start.replacing("\n", with: "\r\n")
            + "# SELECT\n\n> 00A40400\n< 9000\nend\n> 1\n"
        let recording = try CardRecording(text.utf8)
        #expect(recording.exchanges == [.init(hex("00A40400"), hex("9000"))])
        #expect(recording.kind == nil)
    }

    @Test(
        "a recording that lies is refused with its line and the reason",
        arguments: [
            ("", "has no line badged-recording 1"),
            ("badged-recording 2\n", "line 1: only badged-recording 1 is known"),
            ("badged-recording 1\n", "has no answer to reset"),
            ("badged-recording 1\natr 3b\n", "line 2: is no answer to reset"),
            ("badged-recording 1\natr 4b8001\n", "line 2: is no answer to reset"),
            ("badged-recording 1\natr 3b8\n", "line 2: is not hexadecimal"),
            ("badged-recording 1\n> 00A40400\n", "line 2: a command before the answer to reset"),
            (start + "atr 3b8001\n", "line 3: a second answer to reset"),
            (start + "kind Passport\n", "line 3: is no kind of card"),
            (start + "< 9000\n", "line 3: an answer without a command"),
            (start + "> 00A40400\n> 00A40400\n", "line 4: the command before has no answer"),
            (start + "> 00A40400\n", "the last command has no answer"),
            (start + "> 00A404\n", "line 3: is no command"),
            (start + "> 00A4040005AABB\n", "line 3: is no command"),
            (start + "> 00A40400\n< 90\n", "line 4: is no answer"),
            (start + "> 00A40400\n< 1234\n", "line 4: ends with 1234, which is no status word"),
            (start + "> 00A40400\n< 6000\n", "line 4: ends with 6000, which is no status word"),
            (start + "> 00A40400\n< 90 00\n", "line 4: is not hexadecimal"),
            (start + "whatever\n", "line 3: begins with none of"),
            (start + ">00A40400\n", "line 3: begins with none of"),
            (start + "badged-recording 1\n", "line 3: begins with none of"),
            (start + "end here\n", "line 3: begins with none of"),
            (start + "> 00A40400\n< 9000\nkind eid\n", "line 5: a kind in the wrong place"),
            (start + "kind eid\nkind eid\n", "line 4: a kind in the wrong place"),
            (start + "\u{0}\u{1}\u{7F}é\n", "line 3: begins with none of"),
            (start + "> \u{0}é\n", "line 3: is not hexadecimal"),
            (start + "> " + String(repeating: "0", count: 1_000_000), "line 3: a command of more than 4096 bytes"),
            (start + String(repeating: "x", count: 1_000_000), "line 3: begins with none of"),
            (
                start + "> 00B0000000\n< " + String(repeating: "90", count: 65_539) + "\n",
                "line 4: is no answer, which has 2 to 65538 bytes"
            ),
            (start + "> 00A40400\n< 9000\n", "has no line end"),
        ]
    )
    func lies(text: String, reason: String) {
        let error = #expect(throws: Malformed.self) { try CardRecording(text.utf8) }
        #expect(error?.text.hasPrefix(reason) == true, "\(error?.text ?? "")")
    }

    @Test("a recording that was cut anywhere is refused")
    func cut() {
        let whole = Array((Self.start + "kind eid\n> 00A40400\n< 61029000\n> 00C0000002\n< AABB9000\nend").utf8)
        #expect(throws: Never.self) { try CardRecording(whole) }
        for count in 0..<whole.count {
            #expect(throws: Malformed.self, "\(count) bytes") { try CardRecording(whole.prefix(count)) }
        }
    }

    @Test("a recording that is too long, or has too many commands, is refused")
    func bounds() {
        let long = [UInt8](repeating: 0x0A, count: RecordingLines.maximumLength + 1)
        #expect(throws: Malformed.self) { try CardRecording(long) }
        let many = Self.start + String(repeating: "> 00A40400\n< 9000\n", count: CardRecording.maximumExchanges + 1)
        let error = #expect(throws: Malformed.self) { try CardRecording(many.utf8) }
        #expect(error?.text.hasSuffix("more than 4096 commands") == true)
    }

    @Test(
        "the time grows with the text",
        arguments: Growth.alphabets.prefix(FullTables.areWanted ? .max : 12).map(\.text)
    )
    func growth(text: String) {
        #expect(
            Growth.isInProportion(from: 40_000, text) { _ = try? CardRecording((Self.start + "# " + $0).utf8) }
                && Growth.isInProportion(from: 40_000, text) { _ = try? CardRecording((Self.start + $0).utf8) }
        )
    }
}
