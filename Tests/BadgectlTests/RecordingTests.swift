// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing
import Text

/// Each file of Tests/Recordings, played by badged in its virtual reader.
@Suite("Recordings of cards in software", .timeLimit(.minutes(5))) struct RecordingTests {
    private static let folder = testsFolder.appending(path: "Recordings")

    static let names: [String] = {
        let files = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
        return (files ?? []).filter { $0.hasSuffix(".txt") }.sorted()
    }()

    /// SET_CARD with a recording.
    private static func setCard(_ text: String) -> String {
        let card = JSON.object([.init("kind", .string("recording")), .init("recording", .string(text))])
        let command = JSON.object([
            .init("cmd", .string("SET_CARD")), .init("name", .string("Simulator")), .init("card", card),
        ])
        return String(decoding: command.bytes, as: UTF8.self) + "\n"
    }

    private static func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: folder.appending(path: name)), as: UTF8.self)
    }

    @Test("there are recordings")
    func some() { #expect(!Self.names.isEmpty) }

    /// What READER says of a card, besides its kind.
    private static let facts: [String: [String]] = [
        "persosim.txt": [#""retryCounter":3,"deactivated":false,"inoperative":false"#],
        "jmrtd.txt": [#""access":["bac"]"#], "jmrtd-document.txt": [#""access":["bac"]"#],
        "keycard-3.1.txt": [
            #""version":"3.1","initialised":true,"keyUID":""#,
            #""paired":false,"trusted":null,"usedSlots":0,"freeSlots":5"#,
        ],
        "keycard-3.1-new.txt": [#""version":null,"initialised":false,"keyUID":null,"#],
        "keycard-4.0.txt": [
            #""version":"4.0","initialised":true,"keyUID":""#,
            #""pinTries":3,"pukTries":null,"paired":null,"trusted":false"#,
        ],
        "virtual-document.txt": [#""access":["pace","bac"]"#],
    ]

    @Test("badged recognises the card that was recorded", arguments: names)
    func kind(name: String) async throws {
        let text = try Self.text(name)
        let kind = text.split(separator: "\n").first { $0.hasPrefix("kind ") }?.dropFirst(5)
        let daemon = try await RunningDaemon()
        let client = try badgectl(daemon, "send", input: nil)
        client.type(#"{"cmd":"RUN_CHANGE_PIN"}"# + "\n")
        #expect(await client.prints("INSERT_CARD", on: .output))
        client.type(Self.setCard(text))
        let expected = kind.map { #""kind":"\#($0)""# } ?? #""card":{}"#
        #expect(await client.prints(expected, on: .output), "\(client.everything)")
        for fact in Self.facts[name] ?? [] { #expect(client.text(.output).contains(fact), "\(client.everything)") }
        client.type(#"{"cmd":"CANCEL"}"# + "\n")
        client.endInput()
        _ = await client.exitCode
    }

    @Test(
        "RUN_READ_DOCUMENT reads a document that was recorded with its files",
        arguments: [("open-document.txt", #""verdict":"suspect""#), ("jmrtd-document.txt", #""verdict":"unverified""#)]
    )
    func document(name: String, verdict: String) async throws {
        let daemon = try await RunningDaemon()
        let client = try badgectl(daemon, "send", input: nil)
        client.type(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1,2]}"# + "\n")
        #expect(await client.prints("INSERT_CARD", on: .output))
        client.type(Self.setCard(try Self.text(name)))
        #expect(await client.prints("ENTER_MRZ", on: .output), "\(client.everything)")
        let zone = #"P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F3504152<<<<<<<<<<<<<<<4"#
        client.type(#"{"cmd":"SET_MRZ","value":"\#(zone)"}"# + "\n")
        #expect(await client.prints(#""success":"#, on: .output), "\(client.everything)")
        client.endInput()
        _ = await client.exitCode
        let text = client.text(.output)
        for words in [
            #""success":true"#, #""number":"L898902C3""#, verdict, #""protocol":"none""#, #""surname":"ERIKSSON""#,
            #""format":"jpeg""#,
        ] {
            #expect(text.contains(words), "\(words) in \(text)")
        }
    }
}
