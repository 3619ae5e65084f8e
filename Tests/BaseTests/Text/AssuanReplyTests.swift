// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@Suite("Answers of the Assuan protocol") struct AssuanReplyTests {
    /// Reads lines up to the result: "ok DATA", "ok", "error CODE", "open" for an unfinished answer, or the fault.
    private static func read(_ lines: [String]) -> String {
        var reply = AssuanReply()
        do throws(Malformed) {
            for line in lines {
                let result = try Secret(line.utf8).withBytes { bytes throws(Malformed) in
                    try reply.receive(bytes)
                }
                switch result {
                case .done(let box):
                    guard let secret = box?.take() else { return "ok" }
                    return "ok " + secret.withBytes { String(decoding: $0, as: UTF8.self) }
                case .error(let code): return "error \(code)"
                case nil: break
                }
            }
            return "open"
        } catch {
            return error.text
        }
    }

    @Test(
        "status lines and comments are skipped, and the data are decoded and joined",
        arguments: [
            (["OK"], "ok"), (["OK Pleased to meet you"], "ok"), (["D 123456", "OK"], "ok 123456"),
            (["S PINENTRY_LAUNCHED 4711", "# comment", "#", "", "D 12%33", "D 4%35", "OK"], "ok 12345"),
            (["ERR 83886179 Operation cancelled <Pinentry>"], "error 99"), (["ERR 114"], "error 114"),
            (["ERR"], "error 0"), (["ERR -1"], "error 0"), (["ERR 99999999999999999999"], "error 0"),
            (["D"], "open"), (["D", "OK"], "ok "),
        ]
    )
    func answers(lines: [String], expected: String) { #expect(Self.read(lines) == expected) }

    @Test("another line is a fault", arguments: ["INQUIRE QUALITY", "OKAY", "D12", "hello", "\u{0}"])
    func unknown(line: String) { #expect(Self.read([line, "OK"]) == "an unknown line") }

    @Test("lines and data are bounded")
    func bounds() {
        let longest = "# " + String(repeating: "x", count: AssuanReply.longestLine - 2)
        #expect(Self.read([longest, "OK"]) == "ok")
        #expect(Self.read([longest + "x", "OK"]) == "too long")
        let many = Array(repeating: "#", count: AssuanReply.maximumLines)
        #expect(Self.read(many.dropLast() + ["OK"]) == "ok")
        #expect(Self.read(many + ["OK"]) == "too long")
        let data = Array(repeating: "D " + String(repeating: "7", count: 512), count: AssuanReply.maximumData / 512)
        #expect(Self.read(data + ["OK"]).count == "ok ".count + AssuanReply.maximumData)
        #expect(Self.read(data + ["D 7", "OK"]) == "too long")
    }

    @Test(
        "data are decoded as they are",
        arguments: [("a%25%0a", "a%\n"), ("%2", "%2"), ("%zz", "%zz"), ("", ""), ("%", "%"), ("%31", "1")]
    )
    func decoding(data: String, text: String) {
        #expect(Self.read(["D \(data)", "OK"]) == "ok \(text)")
    }
}
