// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import ReadersVirtual
import Server
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("API levels", .timeLimit(.minutes(5)))
@Loop struct LevelTests {
    private let fixture: Fixture

    init() async throws { fixture = try await Fixture(at: .idle) }

    private static func set(_ level: Int) -> String { #"{"cmd":"SET_API_LEVEL","level":\#(level)}"# }

    @Test("a client starts at level 3 and can set each of the three levels")
    func levels() async throws {
        #expect(
            await fixture.client.exchange(#"{"cmd":"GET_API_LEVEL"}"#)
                == [#"{"available":[1,2,3],"current":3,"msg":"API_LEVEL"}"#]
        )
        for level in [1, 2, 3, 1] {
            #expect(
                await fixture.client.exchange(Self.set(level), #"{"cmd":"GET_API_LEVEL","request":0}"#) == [
                    #"{"current":\#(level),"msg":"API_LEVEL"}"#,
                    #"{"available":[1,2,3],"current":\#(level),"msg":"API_LEVEL","request":0}"#,
                ]
            )
        }
    }

    @Test(
        "an invalid level is refused and changes nothing",
        arguments: [
            (#","level":0"#, "Unknown level"), (#","level":4"#, "Unknown level"), (#","level":-1"#, "Unknown level"),
            (#","level":1.5"#, "Unknown level"), (#","level":1e400"#, "Unknown level"),
            (#","level":99999999999999999999"#, "Unknown level"), (#","level":"1""#, "Invalid level"),
            (#","level":null"#, "Invalid level"), (#","level":[1]"#, "Invalid level"),
            ("", "Level cannot be undefined"),
        ]
    )
    func wrongLevels(_ member: String, _ error: String) async throws {
        #expect(
            await fixture.client.exchange(#"{"cmd":"SET_API_LEVEL"\#(member)}"#)
                == [#"{"current":3,"error":"\#(error)","msg":"API_LEVEL"}"#]
        )
    }

    @Test("a whole number in any JSON notation is accepted as the level", arguments: ["2.0", "2e0", "20e-1"])
    func spellings(_ number: String) async throws {
        #expect(
            await fixture.client.exchange(#"{"cmd":"SET_API_LEVEL","level":\#(number)}"#)
                == [#"{"current":2,"msg":"API_LEVEL"}"#]
        )
    }

    @Test("below level 2 GET_STATUS and SET_CARD are unknown, and the list is in `reader`", arguments: [1, 2, 3])
    func hidden(at level: Int) async throws {
        let fixture = try await Fixture(at: .insertCard)
        _ = await fixture.client.exchange(Self.set(level))
        let answers = await fixture.client.exchange(
            #"{"cmd":"GET_STATUS"}"#,
            #"{"cmd":"SET_CARD"}"#,
            #"{"cmd":"GET_READER_LIST"}"#
        )
        let reader = JSON.simulator(card: .null, keypad: false).with("msg", nil)
        let list: JSON = .object([.init("msg", .string("READER_LIST"))])
        if level == 1 {
            #expect(
                answers == [
                    #"{"error":"GET_STATUS","msg":"UNKNOWN_COMMAND"}"#,
                    #"{"error":"SET_CARD","msg":"UNKNOWN_COMMAND"}"#,
                    list.with("reader", .array([reader])),
                ]
            )
        } else {
            #expect(
                answers == [
                    Moment.insertCard.status, #"{"error":"Name cannot be undefined","msg":"INSERT_CARD"}"#,
                    list.with("readers", .array([reader])),
                ]
            )
        }
    }

    @Test(
        "STATUS is sent when PACE begins at level 2 and 3, unless the client disabled it",
        arguments: [1, 2, 3]
    )
    func automaticStatus(at level: Int) async throws {
        for (member, isWanted) in [("", true), (#","status":false"#, false), (#","status":1"#, true)] {
            let fixture = try await Fixture(at: .idle)
            try await fixture.server.insert(.card())
            _ = await fixture.client.exchange(Self.set(level))
            _ = try #require(await fixture.client.ask(#"{"cmd":"RUN_CHANGE_PIN"\#(member)}"#, "ENTER_PIN"))
            let next = await fixture.client.ask(Fixture.setPIN, "STATUS", "ENTER_NEW_PIN")
            #expect(next?["msg"]?.string == (isWanted && level > 1 ? "STATUS" : "ENTER_NEW_PIN"), "\(member)")
        }
    }

    @Test("`status` of RUN_CHANGE_PIN stays in force until it is changed")
    func stickyStatus() async throws {
        for (member, isWanted) in [(#","status":false"#, false), ("", false), (#","status":true"#, true), ("", true)] {
            try await fixture.server.insert(.card())
            _ = try #require(await fixture.client.ask(#"{"cmd":"RUN_CHANGE_PIN"\#(member)}"#, "ENTER_PIN"))
            let next = await fixture.client.ask(Fixture.setPIN, "STATUS", "ENTER_NEW_PIN")
            #expect(next?["msg"]?.string == (isWanted ? "STATUS" : "ENTER_NEW_PIN"))
            _ = await fixture.client.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        }
    }

    private static let foreignCard = VirtualEIDDescription.card {
        $0.files = [.init(fileID: 0x011C, shortFileID: 0x1C, content: [0x31, 0x00])]
        $0.keys = []
    }

    @Test("an unknown card appears in READER at level 3 only", arguments: [1, 2, 3])
    func noEIDCard(at level: Int) async throws {
        let witness = try fixture.server.connect()
        _ = await fixture.client.exchange(Self.set(level))
        _ = await witness.exchange()
        try await fixture.server.insert(Self.foreignCard)
        #expect(await witness.next() == .simulator(card: .object([]), keypad: false))
        let expected: JSON = .simulator(card: level == 3 ? .object([]) : .null, keypad: false)
        #expect(
            await fixture.client.exchange(#"{"cmd":"GET_READER","name":"Simulator"}"#)
                == (level == 3 ? [expected, expected] : [expected])
        )
        await fixture.server.withdraw()
        #expect(await witness.next() == .simulator(card: .null, keypad: false))
        #expect(await fixture.client.exchange() == (level == 3 ? [.simulator(card: .null, keypad: false)] : []))
    }

    @Test("a level that is set during a workflow takes effect at once")
    func midWorkflow() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        let answers = await fixture.client.exchange(Self.set(1), #"{"cmd":"GET_STATUS"}"#, Self.set(2))
        #expect(
            answers == [
                #"{"current":1,"msg":"API_LEVEL"}"#, #"{"error":"GET_STATUS","msg":"UNKNOWN_COMMAND"}"#,
                #"{"current":2,"msg":"API_LEVEL"}"#,
            ]
        )
        #expect(await fixture.client.ask(Fixture.setPIN, "ENTER_NEW_PIN") != nil)
    }
}
