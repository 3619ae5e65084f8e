// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Testing
import Text

private struct Greeting: Message {
    static let name: StaticString = "GREETING"
    let text: String
    var count: Int?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("text", text)
        if level >= .two { object.member("count", count) }
    }
}

private func encoded(_ message: some Message, _ level: APILevel = .three, request: String? = nil) -> String {
    var writer = JSONWriter()
    if let request {
        Array(request.utf8).withUnsafeBytes { message.encode(to: &writer, level, request: $0) }
    } else {
        message.encode(to: &writer, level)
    }
    return String(decoding: writer.bytes, as: UTF8.self)
}

@Suite("Messages", .timeLimit(.minutes(5))) struct MessageTests {
    @Test("a message is one object with its name and its members")
    func members() {
        #expect(encoded(Greeting(text: "a \"b\"\n", count: 3)) == #"{"msg":"GREETING","text":"a \"b\"\n","count":3}"#)
        #expect(encoded(Greeting(text: "")) == #"{"msg":"GREETING","text":"","count":null}"#)
    }

    @Test("a message can differ between API levels")
    func levels() {
        #expect(encoded(Greeting(text: "a", count: 3), .one) == #"{"msg":"GREETING","text":"a"}"#)
    }

    @Test(
        "the message repeats the request as the client wrote it",
        arguments: [
            "17", "1.50", #"{ "b":1, "a":"\u0041" }"#, "null",
        ]
    )
    func request(text: String) throws {
        let line = encoded(Greeting(text: "a"), request: text)
        #expect(line.contains("\"request\":\(text)"))
        #expect(try JSON(line.utf8)["request"] != nil)
    }

    @Test("an emptied writer starts a new message")
    func reuse() {
        var writer = JSONWriter()
        Greeting(text: "a").encode(to: &writer, .one)
        writer.removeAll()
        Greeting(text: "b").encode(to: &writer, .one)
        #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"msg":"GREETING","text":"b"}"#)
    }
}
