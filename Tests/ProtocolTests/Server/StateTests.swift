// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Server
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("Commands in each state of a dialogue", .timeLimit(.minutes(5)))
struct StateTests {
    /// The commands that are allowed at any time.
    private static let always: Set<String> = [
        "GET_INFO", "GET_API_LEVEL", "SET_API_LEVEL", "GET_STATUS", "GET_READER", "GET_READER_LIST", "GET_HEALTH",
        "GET_METRICS", "START_OPENINGS", "STOP_OPENINGS", "IDENTIFY_CARD", "RECORD_CARD",
        "SET_USER_INTERFACE", "START_SCAN", "STOP_SCAN", "GET_SCAN", "GET_DOOR_READER_LIST", "GET_CLOSEST_DOOR_READER",
        "OPEN_READER", "TRIGGER", "ALLOW_OPEN", "SET_TIMEOUTS", "SET_AUTO_OPEN",
        "ADD_READER_KEY", "REMOVE_READER_KEY", "GET_READER_KEYS",
    ]

    /// The other commands that are allowed at a moment.
    private static func allowed(at moment: Moment) -> Set<String> {
        switch moment {
        case .idle: ["RUN_AUTH", "RUN_CHANGE_PIN", "ACTIVATE"]
        case .accessRights: ["CANCEL", "ACCEPT", "GET_ACCESS_RIGHTS", "SET_ACCESS_RIGHTS", "GET_CERTIFICATE"]
        case .insertCard: ["CANCEL", "SET_CARD"]
        case .enterPIN: ["CANCEL", "SET_PIN"]
        case .enterCAN: ["CANCEL", "SET_CAN"]
        case .enterPUK: ["CANCEL", "SET_PUK"]
        case .enterNewPIN: ["CANCEL", "SET_NEW_PIN"]
        case .cardWorks: ["CANCEL"]
        case .pause: ["CANCEL", "CONTINUE"]
        }
    }

    @Test("these tests cover all commands of the server")
    @Loop func commandList() async throws {
        let server = try await TestServer()
        #expect(Set(server.server.specs.map(\.name)) == Set(allCommands))
    }

    @Test("a command in the wrong state is BAD_STATE and changes nothing", arguments: Moment.allCases)
    @Loop func badState(at moment: Moment) async throws {
        let fixture = try await Fixture(at: moment)
        let forbidden = Set(allCommands).subtracting(Self.always).subtracting(Self.allowed(at: moment))
        #expect(!forbidden.isEmpty)
        for name in forbidden.sorted() {
            // The members would be valid in the right state.
            let line = #"{"cmd":"\#(name)","name":"Simulator","request":"r","value":"123456"}"#
            let answer: JSON = .object([
                .init("error", .string(name)), .init("msg", .string("BAD_STATE")),
                .init("request", .string("r")),
            ])
            let answers = await fixture.client.exchange(line, #"{"cmd":"GET_STATUS"}"#)
            #expect(answers == [answer, moment.status])
        }
        fixture.gate?.open()
    }

    @Test("a command in the right state is not BAD_STATE", arguments: Moment.allCases)
    @Loop func goodState(at moment: Moment) async throws {
        for names in [Self.always] + Self.allowed(at: moment).map({ [$0] }) {
            let fixture = try await Fixture(at: moment)
            let answers = await fixture.client.exchange(names.map { #"{"cmd":"\#($0)","request":"r"}"# })
            #expect(!answers.contains { $0["msg"] == .string("BAD_STATE") }, "\(answers)")
            fixture.gate?.open()
        }
    }

    @Test("CANCEL ends the workflow with one final message and frees the reader", arguments: Moment.allCases)
    @Loop func cancel(at moment: Moment) async throws {
        guard moment != .idle else { return }
        let fixture = try await Fixture(at: moment)
        var answers = await fixture.client.exchange(#"{"cmd":"CANCEL","request":"gone"}"#)
        fixture.gate?.open()
        func isFinal(_ message: JSON) -> Bool { message["success"] != nil || message["result"] != nil }
        let name = try #require(moment.workflow)
        if !answers.contains(where: isFinal), let final = await fixture.client.next(name) { answers.append(final) }
        let finals = answers.filter { $0["msg"] != .string("READER") && $0["msg"] != .string("STATUS") }
        #expect(finals.map { $0["msg"] } == [.string(name)])
        #expect(finals.map { $0["reason"] ?? $0["result"]?["reason"] } == [.string("User_Cancelled")])
        #expect(finals.first?["success"] == (name == "AUTH" ? nil : .bool(false)))
        #expect(!fixture.server.isLent())
        #expect(await fixture.client.exchange(#"{"cmd":"GET_STATUS"}"#) == [Moment.idle.status])

        // The next workflow starts from the beginning, with the card not inserted.
        #expect(await fixture.client.exchange(#"{"cmd":"RUN_CHANGE_PIN"}"#).contains(#"{"msg":"CHANGE_PIN"}"#))
    }

    @Test("commands in one write take effect in order")
    @Loop func oneWrite() async throws {
        let fixture = try await Fixture(at: .idle)
        let gate = fixture.readers.gate()
        let answers = await fixture.client.exchange(
            #"{"cmd":"RUN_CHANGE_PIN"}"#,
            #"{"cmd":"SET_CARD","name":"Simulator"}"#,
            #"{"cmd":"GET_STATUS","request":1}"#,
            #"{"cmd":"CANCEL"}"#,
            #"{"cmd":"CANCEL","request":2}"#,
            #"{"cmd":"RUN_CHANGE_PIN","request":3}"#
        )
        gate.open()
        #expect(
            answers.prefix(3) == [
                #"{"msg":"CHANGE_PIN"}"#,
                #"{"msg":"INSERT_CARD"}"#,
                #"{"msg":"STATUS","progress":0,"request":1,"state":"INSERT_CARD","workflow":"CHANGE_PIN"}"#,
            ]
        )
        // The second CANCEL may arrive while the first is still in progress for the same workflow.
        let rest = answers.dropFirst(3)
        #expect(rest.contains(#"{"error":"RUN_CHANGE_PIN","msg":"BAD_STATE","request":3}"#), "\(rest)")
        let last = rest.contains { $0["success"] == .bool(false) } ? nil : await fixture.client.next("CHANGE_PIN")
        #expect(last == nil || last?["reason"] == .string("User_Cancelled"))
    }

    @Test("the second SET_PIN of one write is BAD_STATE, because the first has answered the question")
    @Loop func twoAnswers() async throws {
        let fixture = try await Fixture(at: .enterPIN)
        let gate = fixture.readers.gate()
        let answers = await fixture.client.exchange(Fixture.setPIN, Fixture.setPIN)
        #expect(answers.filter { $0["msg"] != .string("STATUS") } == [#"{"error":"SET_PIN","msg":"BAD_STATE"}"#])
        gate.open()
        #expect(await fixture.client.next("ENTER_NEW_PIN", "ENTER_PIN")?["msg"] == .string("ENTER_NEW_PIN"))
    }
}
