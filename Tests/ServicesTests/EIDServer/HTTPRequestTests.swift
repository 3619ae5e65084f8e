// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import EIDServer

@Suite(.timeLimit(.minutes(5))) struct HTTPRequestTests {
    private func request(_ text: String, pieces: Int = .max) -> (HTTPRequest?, rest: String) {
        var bytes = Array(text.utf8)[...]
        var buffer: [UInt8] = []
        let request = HTTPRequest(
            from: {
                guard !bytes.isEmpty else { return nil }
                defer { bytes = bytes.dropFirst(pieces) }
                return Array(bytes.prefix(pieces))
            },
            buffer: &buffer,
            answerEarly: { _ in true }
        )
        return (request, String(decoding: buffer, as: UTF8.self))
    }

    @Test("a request is read from pieces of any length, without bytes of the next one", arguments: [1, 2, 7, 1000])
    func reads(pieces: Int) throws {
        let text = "POST /paos/1?a=%C3%A9+b&c HTTP/1.1\r\nHost: x\r\nContent-LENGTH: 3\r\n\r\nabcGET"
        let (read, rest) = request(text, pieces: pieces)
        let found = try #require(read)
        #expect((found.method, found.path) == ("POST", "/paos/1"))
        #expect(found.query == ["a": "é b", "c": ""])
        #expect(found.headers["host"] == "x")
        #expect(found.body == Array("abc".utf8))
        #expect("GET".hasPrefix(rest))
    }

    @Test(
        "a request without a valid length is refused",
        arguments: [
            "", "GET / HTTP/1.1\r\n", "GET /\r\n\r\n", "GET / FTP\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 9999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ]
    )
    func refuses(text: String) {
        #expect(request(text).0 == nil)
    }

    @Test("a head of more than 64 KiB is refused", arguments: ["", "\r\n\r\n"])
    func refusesLongHead(end: String) {
        let text = "GET / HTTP/1.1\r\nA: " + String(repeating: "a", count: 70_000) + end
        #expect(request(text, pieces: 10_000).0 == nil, "the long head was read")
    }

    @Test("percent encoding can be decoded")
    func percent() {
        let text = "https://localhost:1/tctoken?a=b&c=ü+ /~"
        #expect(Percent.decode(Percent.encode(text)[...]) == text)
        #expect(Percent.decode("%4") == nil)
        #expect(Percent.decode("%zz") == nil)
        #expect(Percent.decode("%ff") == nil)
    }
}
