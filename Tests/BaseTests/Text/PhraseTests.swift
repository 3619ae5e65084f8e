// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

@testable import Text

@Suite("Texts of badged in messages", .timeLimit(.minutes(5))) struct PhraseTests {
    private static let reason: Phrase = "\("vcan0") is away"
    private static let failure: Failure = {
        var failure = Failure(.init("X"), "No connection to \("the {0} \"phone\""): \(reason)", advice: "begin again")
        failure.change = "nothing was \(Phrase("changed"))"
        return failure
    }()

    private static let german = [
        "No connection to {0}: {1}": "{1}, also keine Verbindung zu {0}", "{0} is away": "{0} ist weg",
        "begin again": "noch einmal beginnen", "nothing was {0}": "es wurde nichts {0}", "changed": "geändert",
    ]

    private static func message(_ write: (inout JSONWriter) -> Void) throws -> JSON {
        try JSON(JSONWriter.bytes(write))
    }

    @Test("a failure has the same English text as ever, and comes out in German with its values, nested ones, too")
    func failure() throws {
        let message = try Self.message { $0.member("error", Self.failure.message) }
        let english = #"No connection to the {0} "phone": vcan0 is away: begin again. nothing was changed"#
        #expect(message["error"]?.string == english)
        let phrase = try #require(Phrase("error", of: message))
        #expect(phrase.description == english)
        #expect(
            phrase.text { Self.german[$0] }
                == #"vcan0 ist weg, also keine Verbindung zu the {0} "phone": noch einmal beginnen. es wurde nichts geändert"#
        )
    }

    @Test("a failure goes through a message between programs without a loss")
    func between() throws {
        var reader = MessageReader(MessageWriter(kind: 1, Self.failure.message).bytes)
        _ = try reader.read(UInt8.self)
        let read: Phrase = try reader.read()
        #expect(read.key == Self.failure.message.key && read.values == Self.failure.message.values)
        #expect(read.text { Self.german[$0] } == Self.failure.message.text { Self.german[$0] })
        #expect(reader.isAtEnd)
    }

    @Test(
        "only a text with values has a phrase beside it",
        arguments: ["plain", Phrase(verbatim: "somebody's"), "\("value")", "\(Phrase(verbatim: "twice"))"] as [Phrase]
    )
    func plain(phrase: Phrase) throws {
        let message = try Self.message { $0.member("error", phrase) }
        #expect(message.members?.map(\.key) == ["error"])
        #expect(Phrase("error", of: message)?.description == phrase.description)
    }

    @Test("a text without a phrase is its own template")
    func template() throws {
        let message = try Self.message { $0.member("error", "begin again" as Phrase) }
        #expect(Phrase("error", of: message)?.text { Self.german[$0] } == "noch einmal beginnen")
    }

    @Test("literals that are joined count their values on")
    func joined() {
        let phrase: Phrase = "\(1) of \(2)" + " and \(3)" + " in \(Self.reason)"
        #expect(phrase.key == "{0} of {1} and {2} in {3}")
        #expect(phrase.description == "1 of 2 and 3 in vcan0 is away")
        #expect(Phrase.joined(["\(1) a", "b", "\(2) c"], by: "; ").description == "1 a; b; 2 c")
    }

    private static func nested(_ depth: Int) -> String {
        String(repeating: #"{"template":"{0}.","values":["#, count: depth) + #""x""#
            + String(repeating: "]}", count: depth)
    }

    @Test(
        "a phrase that is malformed, too large, or says something else leaves the English text",
        arguments: [
            "null", "7", #""text""#, "[]", "{}", #"{"template":7}"#, #"{"values":["a"]}"#,
            // The number of values.
            #"{"template":"{0} is away"}"#, #"{"template":"{0} is away","values":["x","y"]}"#,
            #"{"template":"{0} {0}","values":["x"]}"#, #"{"template":"{1} is away","values":["x"]}"#,
            #"{"template":"{0} is away{","values":["x"]}"#,
            // Values of other types.
            #"{"template":"{0} is away","values":[7]}"#, #"{"template":"{0} is away","values":[null]}"#,
            #"{"template":"{0} is away","values":"x"}"#, #"{"template":"{0} is away","values":[["x"]]}"#,
            // Another text than the English one.
            #"{"template":"{0} is away","values":["y"]}"#, #"{"template":"begin again"}"#,
            // Size and depth.
            nested(9), nested(200),
            #"{"template":"\#(String(repeating: "x", count: 2001))"}"#,
            #"{"template":"{0} is away","values":["\#(String(repeating: "x", count: 500_000))"]}"#,
            #"{"template":"x","values":[\#(Array(repeating: #""x""#, count: 65).joined(separator: ","))]}"#,
            #"{"template":"\#(String(repeating: "{0}", count: 600))","values":["xxxxxxxxxxxxxxxxxxxxxxx"]}"#,
            #"{"template":"a\#(String(repeating: #"\u0301"#, count: 200))"}"#,
        ]
    )
    func hostile(words: String) throws {
        let message = try JSON(#"{"error":"x is away","errorWords":\#(words)}"#.utf8)
        #expect(Phrase("error", of: message)?.text { Self.german[$0] } == "x is away")
        #expect(try JSON(#"{"error":7,"errorWords":\#(words)}"#.utf8).text("error") { _ in nil } == nil)
    }

    @Test("as many values and levels as are allowed are read")
    func limits() throws {
        let text = "x" + String(repeating: ".", count: 8)
        let message = try JSON(#"{"error":"\#(text)","errorWords":\#(Self.nested(8))}"#.utf8)
        #expect(
            Phrase("error", of: message)?.text { $0 == "{0}." ? "{0}!" : nil } == "x" + String(repeating: "!", count: 8)
        )
    }

    @Test("a translation with other placeholders leaves its part in English")
    func otherPlaceholders() throws {
        let message = try Self.message { $0.member("error", "it stopped: \(Self.reason)" as Phrase) }
        let texts = ["it stopped: {0}": "es steht: {0}", "{0} is away": "{1} ist weg"]
        #expect(Phrase("error", of: message)?.text { texts[$0] } == "es steht: vcan0 is away")
    }
}

extension JSON {
    fileprivate func text(_ member: String, _ lookUp: (String) -> String?) -> String? {
        Phrase(member, of: self)?.text(lookUp)
    }
}
