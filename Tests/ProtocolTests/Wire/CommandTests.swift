// SPDX-License-Identifier: GPL-3.0-or-later
import Secrets
import Testing
import Text
import Wire

/// Calls `body` with the command in a line.
private func with<Result>(_ line: String, _ body: (Command) throws -> Result) throws -> Result {
    try Array(line.utf8).withUnsafeBytes { try body(try Command(scanning: $0)) }
}

private func describe<Value>(_ field: Field<Value>) -> String {
    switch field {
    case .missing: "missing"
    case .invalid: "invalid"
    case .value(let value): "\(value)"
    }
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
        "a member is missing, of another type, or a value",
        arguments: [
            ("null", "invalid", "invalid", "invalid", "invalid", "invalid"),
            ("true", "invalid", "true", "invalid", "invalid", "invalid"),
            ("false", "invalid", "false", "invalid", "invalid", "invalid"),
            ("17", "invalid", "invalid", "Optional(17)", "invalid", "invalid"),
            ("2.0", "invalid", "invalid", "Optional(2)", "invalid", "invalid"),
            ("1.5", "invalid", "invalid", "nil", "invalid", "invalid"),
            (#""ab""#, "ab", "invalid", "invalid", "invalid", "ab"),
            (#""a\u0031\n\ud83d\ude00""#, "a1\n😀", "invalid", "invalid", "invalid", "a1\n😀"),
            ("[1]", "invalid", "invalid", "invalid", "invalid", "invalid"),
            ("{}", "invalid", "invalid", "invalid", "object([])", "invalid"),
        ] as [(String, String, String, String, String, String)]
    )
    func fields(value: String, string: String, bool: String, int: String, object: String, secret: String) throws {
        for line in ["{\"v\":\(value)}", "{ \"w\" : 1, \"v\" : \(value) }"] {
            try with(line) { command in
                #expect(describe(command.string("v")) == string)
                #expect(describe(command.bool("v")) == bool)
                #expect(describe(command.int("v")) == int)
                let found: String
                switch command.object("v") {
                case .missing: found = "missing"
                case .invalid: found = "invalid"
                case .value(let json): found = "object(\(json.members ?? []))"
                }
                #expect(found == object)
                #expect(describe(command.secret("v")) == secret)
                #expect(command.isPresent("v"))
                #expect(describe(command.string("x")) == "missing")
                #expect(describe(command.bool("x")) == "missing")
                #expect(describe(command.int("x")) == "missing")
                #expect(describe(command.secret("x")) == "missing")
                #expect(!command.isPresent("x"))
            }
        }
    }

    @Test("an object in a command is read as a tree")
    func object() throws {
        let line = #"{"cmd":"SET_CARD","simulator":{"files":[{"fileId":"0101"}],"x":{"y":null}}}"#
        let json: JSON? = try with(line) { command in
            guard case .value(let json) = command.object("simulator") else { return nil }
            return json
        }
        #expect(json?["files"]?.array?.first?["fileId"] == .string("0101"))
        #expect(json?["x"]?["y"] == .null)
    }

    @Test("a line that is not JSON is not a command")
    func error() {
        let error = #expect(throws: Malformed.self) { try with("{") { _ in } }
        #expect(error?.text == "unterminated object (offset: 1)")
    }
}
