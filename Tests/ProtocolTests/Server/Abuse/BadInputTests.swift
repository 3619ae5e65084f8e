// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Server
import TestSupport
import Testing
import Text

@Suite("Bad input", .timeLimit(.minutes(5)))
@Loop struct BadInputTests {
    private let fixture: Fixture

    init() async throws { fixture = try await Fixture(at: .idle) }

    private static let level: JSON = #"{"available":[1,2,3],"current":3,"msg":"API_LEVEL"}"#
    private static let tooLong: JSON = #"{"error":"line too long (more than 1048576 bytes)","msg":"INVALID"}"#

    /// Returns a GET_API_LEVEL command of `count` bytes.
    private static func line(of count: Int) -> String {
        let (head, tail) = (#"{"cmd":"GET_API_LEVEL","x":""#, #""}"#)
        return head + String(repeating: "x", count: count - head.utf8.count - tail.utf8.count) + tail
    }

    @Test("a line of 1 MiB is answered, a longer line is INVALID, and the connection stays open")
    func lineLimit() async throws {
        #expect(await fixture.client.exchange(Self.line(of: 1 << 20)) == [Self.level])
        #expect(await fixture.client.exchange(Self.line(of: 1 << 20 + 1)) == [Self.tooLong])
        #expect(await fixture.client.exchange(#"{"cmd":"GET_API_LEVEL"}"#) == [Self.level])
    }

    @Test("a line of 10 MiB gets one answer at the limit, and the remainder is skipped")
    func hugeLine() async throws {
        await fixture.client.send(bytes: Array(repeating: UInt8(ascii: "{"), count: 1 << 20 + 2))
        #expect(await fixture.client.next() == Self.tooLong)
        for _ in 0..<9 { await fixture.client.send(bytes: Array(repeating: UInt8(ascii: "x"), count: 1 << 20)) }
        #expect(await fixture.client.exchange("", #"{"cmd":"GET_API_LEVEL"}"#) == [Self.level])
    }

    @Test("a long line does not disturb a workflow")
    func longLineInWorkflow() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        #expect(await fixture.client.exchange(Self.line(of: 1 << 20 + 1)) == [Self.tooLong])
        #expect(
            await fixture.client.ask(Fixture.setPIN, "ENTER_NEW_PIN", "BAD_STATE")?["msg"] == .string("ENTER_NEW_PIN")
        )
    }

    @Test(
        "a line that is not UTF-8 is INVALID, and the connection stays open",
        arguments: [
            [0xFF], [0xFE], [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x20], [0xE0, 0x80, 0x80],
            [0xE0, 0x9F, 0xBF], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF0, 0x9F, 0x98], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80],
        ]
    )
    func notUTF8(_ bytes: [UInt8]) async throws {
        for head in [#"{"cmd":""#, #"{"cmd":"GET_API_LEVEL","x":""#, #"{"cmd":"GET_API_LEVEL",""#] {
            await fixture.client.send(bytes: Array(head.utf8) + bytes + Array("\"}\n".utf8))
            let answer = await fixture.client.next()
            #expect(answer?["msg"] == .string("INVALID"))
            #expect(answer?["error"]?.string == "invalid UTF8 string (offset: \(head.utf8.count))")
        }
        // Invalid UTF-8 outside of strings is refused too.
        await fixture.client.send(bytes: bytes + Array(#"{"cmd":"GET_API_LEVEL"}"#.utf8) + [0x0A])
        #expect(await fixture.client.next()?["msg"] == .string("INVALID"))
        #expect(await fixture.client.exchange(#"{"cmd":"GET_API_LEVEL"}"#) == [Self.level])
    }

    @Test("a control character or a lone surrogate in a string is INVALID with its position, and never repeated")
    func notUnicode() async throws {
        let lines = [
            #"{"cmd":"GET_INFO@"}"#, #"{"cmd":"GET_READER","name":"@"}"#, #"{"cmd":"GET_API_LEVEL","request":"@"}"#,
            #"{"cmd":"GET_API_LEVEL","request":["\u0041@"]}"#, #"{"cmd":"GET_API_LEVEL","request":{"a@":1}}"#,
            #"{"x":"@","cmd":"GET_API_LEVEL"}"#, #"{"x@":1,"cmd":"GET_API_LEVEL"}"#, #"{"cmd":"NO","request":"@"}"#,
        ]
        let bad = (0..<0x20).filter { $0 != 0x0A }.map { String(UnicodeScalar(UInt8($0))) } + [#"\ud800"#, #"\udfff"#]
        for (line, text) in lines.flatMap({ line in bad.map { (line, $0) } }) {
            let offset = line.utf8.prefix { $0 != UInt8(ascii: "@") }.count
            let kind = text.hasPrefix("\\") ? "lone surrogate" : "control character"
            let expected: JSON = .object([
                .init("error", .string("\(kind) in a string (offset: \(offset))")), .init("msg", .string("INVALID")),
            ])
            #expect(await fixture.client.exchange(line.replacing("@", with: text)) == [expected])
        }
        #expect(await fixture.client.exchange(#"{"cmd":"GET_API_LEVEL"}"#) == [Self.level])
    }

    @Test("an escaped NUL is accepted in a string, and a raw one is INVALID everywhere")
    func nul() async throws {
        #expect(
            await fixture.client.exchange("{\"cmd\":\"GET_INFO\\u0000\"}")
                == [#"{"error":"GET_INFO\#u{5C}u0000","msg":"UNKNOWN_COMMAND"}"#]
        )
        #expect(
            await fixture.client.exchange("{\"cmd\":\"GET_READER\",\"name\":\"\\u0000\"}")
                == [#"{"attached":false,"msg":"READER","name":"\#u{5C}u0000"}"#]
        )
        for line in ["\0", "\0{\"cmd\":\"GET_API_LEVEL\"}", "{\"cmd\":\"GET_API_LEVEL\"}\0", "{\0}"] {
            #expect(await fixture.client.exchange(line).map { $0["msg"]?.string } == ["INVALID"])
        }
        await fixture.client.send(bytes: Array(repeating: 0, count: 100_000) + [0x0A])
        #expect(await fixture.client.next()?["msg"] == .string("INVALID"))
    }

    @Test(
        "100 000 opening brackets are INVALID and do not exhaust the stack",
        arguments: [("[", ""), ("{\"a\":", ""), ("[", "]"), ("[[],", ""), (#"{"cmd":"GET_API_LEVEL","x":["#, "")]
    )
    func nesting(_ open: String, _ close: String) async throws {
        let line = String(repeating: open, count: 100_000) + String(repeating: close, count: 100_000)
        let answers = await fixture.client.exchange(String(line.utf8.prefix(1 << 20)) ?? "")
        #expect(answers.count == 1)
        #expect(answers.first?["error"]?.string?.hasPrefix("too deeply nested document") == true)
        #expect(await fixture.client.exchange(#"{"cmd":"GET_API_LEVEL"}"#) == [Self.level])
    }

    @Test("1024 nested levels are accepted, 1025 are refused")
    func depth() async throws {
        func line(_ depth: Int) -> String {
            #"{"cmd":"GET_API_LEVEL","x":"# + String(repeating: "[", count: depth - 1)
                + String(repeating: "]", count: depth - 1) + "}"
        }
        let answers = await fixture.client.exchange(line(1024), line(1025))
        #expect(answers.first == Self.level)
        #expect(answers.last?["error"]?.string?.hasPrefix("too deeply nested document") == true)
    }

    @Test("2 000 commands sent in 4 000 halves are answered in order")
    func halves() async throws {
        for number in 0..<2000 {
            let line = Array(#"{"cmd":"GET_API_LEVEL","request":\#(number)}"#.utf8) + [0x0A]
            let middle = number % (line.count - 1) + 1
            await fixture.client.send(bytes: Array(line[..<middle]))
            if number % 7 == 0 { await Task.yield() }
            await fixture.client.send(bytes: Array(line[middle...]))
        }
        var answered = 0
        while answered < 2000, let answer = await fixture.client.next() {
            guard answer["request"]?.int == answered else {
                Issue.record("\(answer) instead of \(answered)")
                break
            }
            answered += 1
        }
        #expect(answered == 2000)
    }

    @Test("10 000 writes without a line feed are buffered as one line, and other clients are served")
    func endless() async throws {
        let witness = try fixture.server.connect()
        let earlier = fixture.client.count
        for _ in 0..<10_000 { await fixture.client.send(bytes: Array(#"{"cmd":"GET_INFO""#.utf8)) }
        #expect(await witness.exchange(#"{"cmd":"GET_STATUS"}"#).last == Moment.idle.status)
        #expect(fixture.client.count == earlier)
        await fixture.client.send("")
        #expect(await fixture.client.next()?["msg"] == .string("INVALID"))
    }

    @Test("a command that is sent byte by byte is answered")
    func bytewise() async throws {
        for byte in Array("{\"cmd\":\"GET_API_LEVEL\",\"x\":\"ä\"}\r\n".utf8) {
            await fixture.client.send(bytes: [byte])
            await Task.yield()
        }
        #expect(await fixture.client.next() == Self.level)
    }

    @Test("each of 5 000 random lines is answered with INVALID or UNKNOWN_COMMAND")
    func randomLines() async throws {
        var random = SplitMix64(seed: 20_260_101)
        let alphabet = Array(#"{}[]:,"\ua1eEn.-+tfcmd GET_INFO"#.utf8) + [0x00, 0x0D, 0x80, 0xC3, 0xA4, 0xFF]
        var sent: [UInt8] = []
        for _ in 0..<5000 {
            for _ in 0..<random.next(upperBound: UInt64(40)) {
                sent.append(alphabet[Int(random.next(upperBound: UInt64(alphabet.count)))])
            }
            sent.append(0x0A)
        }
        let earlier = fixture.client.count
        await fixture.client.send(bytes: sent)
        #expect(await fixture.client.exchange(#"{"cmd":"GET_STATUS"}"#).last == Moment.idle.status)
        let answers = fixture.client.transcript[earlier...].dropLast(2)
        #expect(answers.count == 5000)
        #expect(answers.allSatisfy { ["INVALID", "UNKNOWN_COMMAND"].contains($0["msg"]?.string) })
    }
}
