// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Server
import TestSupport
import Testing
import Text

@Suite("Command envelope", .timeLimit(.minutes(5)))
struct EnvelopeTests {
    @Test(
        "the direct answer repeats `request` byte for byte",
        arguments: [
            #""abc""#, "17", "1.5", "true", "null", #""""#, #"{"a":1}"#, #"[1,"x"]"#, "12345678901234567890", "-0.0",
            "1e400", #"{"b":[{"c":null}],"a":"\u0041"}"#, #""ä€𝄞""#,
        ]
    )
    @Loop func echo(_ request: String) async throws {
        let fixture = try await Fixture(at: .idle)
        let commands = [
            "GET_INFO", "GET_API_LEVEL", "SET_API_LEVEL", "GET_STATUS", "GET_READER", "GET_READER_LIST", "GET_HEALTH",
            "SET_PIN", "SET_NEW_PIN", "SET_CAN", "SET_PUK", "SET_CARD", "CANCEL", "CONTINUE", "NO_SUCH", "",
        ]
        for command in commands {
            let answers = await fixture.client.exchange(#"{"cmd":"\#(command)","request":\#(request)}"#)
            #expect(answers.count == 1, "\(command)")
            // The parser takes objects and arrays only at the top level.
            let expected = try JSON(#"{"request":\#(request)}"#.utf8)["request"]
            #expect(answers.first?["request"] == expected, "\(command)")
        }
    }

    @Test("later messages of a command do not repeat its `request`")
    @Loop func noEcho() async throws {
        let fixture = try await Fixture(at: .idle)
        let started = await fixture.client.exchange(#"{"cmd":"RUN_CHANGE_PIN","request":1}"#)
        #expect(started == [#"{"msg":"CHANGE_PIN"}"#, #"{"msg":"INSERT_CARD"}"#])
        #expect(
            await fixture.client.exchange(#"{"cmd":"RUN_CHANGE_PIN","request":2}"#) == [
                #"{"error":"RUN_CHANGE_PIN","msg":"BAD_STATE","request":2}"#
            ]
        )
        let final = await fixture.client.ask(#"{"cmd":"CANCEL","request":3}"#, "CHANGE_PIN")
        #expect(final?["request"] == nil)
    }

    @Test(
        "a line that is not a command is INVALID or UNKNOWN_COMMAND, and the connection stays open",
        arguments: [
            (#"{}"#, "INVALID", "Command cannot be undefined"),
            (#"[]"#, "INVALID", "Command cannot be undefined"),
            (#"{"cmd":""}"#, "INVALID", "Command cannot be undefined"),
            (#"{"cmd":null}"#, "INVALID", "Command cannot be undefined"),
            (#"{"cmd":{"cmd":"GET_INFO"}}"#, "INVALID", "Command cannot be undefined"),
            (#"{"CMD":"GET_INFO"}"#, "INVALID", "Command cannot be undefined"),
            (#"{"cmd":"get_info"}"#, "UNKNOWN_COMMAND", "get_info"),
            (#"{"cmd":"GET_INFO "}"#, "UNKNOWN_COMMAND", "GET_INFO "),
            (#"{"cmd":"INTERRUPT"}"#, "UNKNOWN_COMMAND", "INTERRUPT"),
            (#"{"cmd":"GET_LOG"}"#, "UNKNOWN_COMMAND", "GET_LOG"),
            (#"{"cmd":"RUN_PERSONALIZATION"}"#, "UNKNOWN_COMMAND", "RUN_PERSONALIZATION"),
            (#"{"cmd":"\"\\\n\u0001ä"}"#, "UNKNOWN_COMMAND", "\"\\\n\u{1}ä"),
            ("", "INVALID", "illegal value (offset: 0)"),
            ("-", "INVALID", "illegal value (offset: 1)"),
            (#"{"cmd":"GET_INFO"} x"#, "INVALID", "garbage at the end of the document (offset: 19)"),
            (#"{"cmd":01}"#, "INVALID", "unterminated object (offset: 9)"),
            (#"{"cmd":"\x"}"#, "INVALID", "invalid escape sequence (offset: 10)"),
            (#"{"cmd":"\u12"}"#, "INVALID", "invalid escape sequence (offset: 12)"),
        ]
    )
    @Loop func notACommand(_ line: String, _ message: String, _ error: String) async throws {
        let fixture = try await Fixture(at: .idle)
        let expected: JSON = .object([.init("error", .string(error)), .init("msg", .string(message))])
        #expect(await fixture.client.exchange(line) == [expected])
    }

    @Test(
        "unknown members, spaces, a byte order mark and \\r\\n are ignored",
        arguments: [
            #"{"cmd":"GET_API_LEVEL","x":{"cmd":"GET_INFO"},"status":5}"#, #" { "cmd" : "GET_API_LEVEL" } "#,
            "\u{FEFF}" + #"{"cmd":"GET_API_LEVEL"}"#, #"{"cmd":"GET_API_LEVEL"}"# + "\r",
            #"{"cmd":"GET\u005FAPI\u005fLEVEL"}"#, #"{"\u0063md":"GET_API_LEVEL"}"#,
            #"{"cmd":1,"cmd":"GET_API_LEVEL"}"#,
        ]
    )
    @Loop func tolerance(_ line: String) async throws {
        let fixture = try await Fixture(at: .idle)
        #expect(
            await fixture.client.exchange(line) == [#"{"available":[1,2,3],"current":3,"msg":"API_LEVEL"}"#]
        )
    }

    @Test("messages contain no white space")
    @Loop func compact() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        _ = await fixture.client.exchange(
            #"{"cmd":"GET_INFO","request":1}"#,
            #"{"cmd":"GET_HEALTH","request":1}"#,
            #"{"cmd":"GET_READER_LIST","request":1}"#,
            #"{"cmd":"GET_STATUS","request":1}"#,
            #"{"cmd":"SET_PIN","request":1}"#,
            #"{"cmd":"GET_API_LEVEL","request":1}"#
        )
        #expect(fixture.client.lines.allSatisfy { (try? JSON($0))?.bytes == $0 })
    }
}
