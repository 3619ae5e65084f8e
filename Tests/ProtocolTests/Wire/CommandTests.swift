// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Testing
import Text

/// Calls `body` with the command in a line.
private func with<Result>(_ line: String, _ body: (Command) throws -> Result) throws -> Result {
    try Array(line.utf8).withUnsafeBytes { try body(try Command(scanning: $0)) }
}

private func describe(_ field: consuming SecretField) -> String {
    switch consume field {
    case .missing: "missing"
    case .invalid: "invalid"
    case .value(let secret): secret.withBytes { String(decoding: $0, as: UTF8.self) }
    }
}

@Suite("Commands", .timeLimit(.minutes(5))) struct CommandTests {
    @Test(
        "the command name is a non-empty string, otherwise nil",
        arguments: [
            (#"{"cmd":"GET_INFO"}"#, "GET_INFO"), (#"{"cmd":"NO","cmd":"GET_INFO"}"#, "GET_INFO"),
            (#"{"cmd":"GET\u005fINFO"}"#, "GET_INFO"), (#"{"c\u006dd":"GET_INFO"}"#, "GET_INFO"),
            (#"{"cmd":" GET_INFO"}"#, " GET_INFO"), (#"{"cmd":"get_info"}"#, "get_info"),
            (#"{"cmd":"GET_\u0000INFO"}"#, "GET_\u{0}INFO"),
            (#"{"cmd":""}"#, nil), (#"{"cmd":5}"#, nil), (#"{"cmd":null}"#, nil), (#"{"cmd":["GET_INFO"]}"#, nil),
            (#"{"cmd":{}}"#, nil), ("{}", nil), (#"{"msg":"INFO"}"#, nil), (#"{"CMD":"GET_INFO"}"#, nil),
            ("[]", nil), (#"[{"cmd":"GET_INFO"}]"#, nil),
        ] as [(String, String?)]
    )
    func name(line: String, expected: String?) throws {
        #expect(try with(line) { $0.name } == expected)
    }

    @Test(
        "the request is returned byte for byte",
        arguments: [
            "3", #""r1""#, "true", "null", #""""#, #"{"a":1}"#, #"[1,"x"]"#, "1.50", #"{ "b" : [ ] }"#, #""\u0041""#,
        ]
    )
    func request(value: String) throws {
        let line = "{\"cmd\":\"GET_INFO\",\"request\": \(value) ,\"x\":1}"
        let echoed = try with(line) { $0.request.map { String(decoding: $0, as: UTF8.self) } }
        #expect(echoed == value)
    }

    @Test("a command without a request has none")
    func noRequest() throws {
        #expect(try with(#"{"cmd":"GET_INFO","requestId":3}"#) { $0.request == nil })
    }

    @Test(
        "a member is missing, a value, and a secret only if it is a string",
        arguments: [
            ("null", .null, "invalid"), ("true", .bool(true), "invalid"), ("false", .bool(false), "invalid"),
            ("17", .number("17"), "invalid"), ("2.0", .number("2.0"), "invalid"), (#""ab""#, .string("ab"), "ab"),
            (#""a\u0031\n\ud83d\ude00""#, .string("a1\n😀"), "a1\n😀"),
            ("[1]", .array([.number("1")]), "invalid"), ("{}", .object([]), "invalid"),
        ] as [(String, JSON, String)]
    )
    func members(text: String, value: JSON, secret: String) throws {
        for line in ["{\"v\":\(text)}", "{ \"w\" : 1, \"v\" : \(text) }"] {
            try with(line) { command in
                #expect(command.value("v") == value)
                #expect(describe(command.secret("v")) == secret)
                #expect(command.has("v") == (value != .null))
                #expect(command.value("x") == nil)
                #expect(describe(command.secret("x")) == "missing")
                #expect(!command.has("x"))
            }
        }
    }

    @Test("an object in a command is read as a tree")
    func object() throws {
        let line = #"{"cmd":"SET_CARD","simulator":{"files":[{"fileId":"0101"}],"x":{"y":null}}}"#
        let json = try with(line) { $0.value("simulator") }
        #expect(json?["files"]?.array?.first?["fileId"] == .string("0101"))
        #expect(json?["x"]?["y"] == .null)
    }

    @Test("a command has at most 256 members; those of objects inside do not count")
    func manyMembers() throws {
        func line(_ count: Int) -> String {
            let others = (1..<count).map { ",\"\\u0061\($0)\":{\"x\":1,\"y\":2}" }.joined()
            return "{\"cmd\":\"GET_INFO\"\(others)}"
        }
        #expect(try with(line(256)) { $0.name } == "GET_INFO")
        let error = #expect(throws: Malformed.self) { try with(line(257)) { _ in } }
        #expect(error?.text.hasPrefix("too many members (offset: ") == true)
    }

    @Test("a name is found with every character escaped, and not in a longer one")
    func escapedNames() throws {
        let escaped = "cmd".utf16.map { "\\u00" + String($0, radix: 16) }.joined()
        #expect(try with("{\"\(escaped)\":\"GET_INFO\"}") { $0.name } == "GET_INFO")
        #expect(try with("{\"\(escaped)\\u0000\":\"GET_INFO\"}") { $0.name } == nil)
    }

    @Test("a line that is not JSON is not a command")
    func error() {
        let error = #expect(throws: Malformed.self) { try with("{") { _ in } }
        #expect(error?.text == "unterminated object (offset: 1)")
    }
}
