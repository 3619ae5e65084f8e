// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import ReadersVirtual
import Server
import TestSupport
import Testing
import Text
import VirtualEID

/// Every command of the protocol.
let allCommands = [
    "ACCEPT",
    "ACTIVATE",
    "ADD_READER_KEY",
    "ALLOW_OPEN",
    "CANCEL",
    "CONTINUE",
    "GET_ACCESS_RIGHTS",
    "GET_API_LEVEL",
    "GET_CERTIFICATE",
    "GET_CLOSEST_DOOR_READER",
    "GET_DOOR_READER_LIST",
    "GET_HEALTH",
    "GET_INFO",
    "GET_METRICS",
    "GET_READER",
    "GET_READER_KEYS",
    "GET_READER_LIST",
    "GET_SCAN",
    "GET_STATUS",
    "IDENTIFY_CARD",
    "OPEN_READER",
    "RECORD_CARD",
    "REMOVE_READER_KEY",
    "RUN_AUTH",
    "RUN_CHANGE_PIN",
    "SET_ACCESS_RIGHTS",
    "SET_API_LEVEL",
    "SET_AUTO_OPEN",
    "SET_CAN",
    "SET_CARD",
    "SET_NEW_PIN",
    "SET_PIN",
    "SET_PUK",
    "SET_TIMEOUTS",
    "SET_USER_INTERFACE",
    "START_SCAN",
    "START_OPENINGS",
    "STOP_OPENINGS",
    "STOP_SCAN",
    "TRIGGER",
]

/// The states of a dialogue in which commands and failures are tested.
enum Moment: CaseIterable, Sendable {
    case idle
    /// RUN_AUTH waits for the user's consent.
    case accessRights
    case insertCard
    case enterPIN
    case enterCAN
    case enterPUK
    case enterNewPIN
    /// PACE runs, and an answer of the card is outstanding.
    case cardWorks
    case pause

    /// The `state` in the answer to GET_STATUS.
    var state: String? {
        switch self {
        case .idle, .cardWorks: nil
        case .accessRights: "ACCESS_RIGHTS"
        case .insertCard: "INSERT_CARD"
        case .enterPIN: "ENTER_PIN"
        case .enterCAN: "ENTER_CAN"
        case .enterPUK: "ENTER_PUK"
        case .enterNewPIN: "ENTER_NEW_PIN"
        case .pause: "PAUSE"
        }
    }

    /// The name of the workflow and of its final message.
    var workflow: String? {
        switch self {
        case .idle: nil
        case .accessRights: "AUTH"
        case .insertCard, .enterPIN, .enterCAN, .enterPUK, .enterNewPIN, .cardWorks, .pause: "CHANGE_PIN"
        }
    }

    var status: JSON {
        JSON.object([
            .init("msg", .string("STATUS")),
            .init("progress", self == .idle ? .null : .number("0")),
            .init("state", state.map(JSON.string) ?? .null),
            .init("workflow", workflow.map(JSON.string) ?? .null),
        ])
    }
}

/// A server with one virtual reader and one client, whose workflow is at a given moment.
@Loop struct Fixture {
    let readers: RecordingReaders
    let server: TestServer
    let client: TestClient
    /// The gate that holds the card's answer at `cardWorks`.
    private(set) var gate: RecordingReaders.Gate?

    static let pin = "123456"

    init(service: TestService = TestService()) async throws {
        readers = try RecordingReaders()
        server = try await TestServer(readers: 0, backends: [readers], service: { _, _ in service })
        await server.ready(["Simulator"])
        client = try server.connect()
    }

    /// Takes the client's dialogue to the moment and reads all messages until then.
    init(at moment: Moment) async throws {
        try await self.init()
        switch moment {
        case .idle:
            _ = await client.exchange()
        case .accessRights:
            _ = try #require(await client.ask(Self.runAuth, "ACCESS_RIGHTS"))
        case .insertCard:
            _ = await client.exchange(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        case .enterPIN:
            try await ask("ENTER_PIN", .card())
        case .enterCAN:
            try await ask("ENTER_CAN", .card { $0.retryCounter = 1 })
        case .enterPUK:
            try await ask("ENTER_PUK", .card { $0.retryCounter = 0 })
        case .enterNewPIN:
            try await ask("ENTER_PIN", .card())
            _ = try #require(await client.ask(Self.setPIN, "ENTER_NEW_PIN"))
        case .cardWorks:
            try await ask("ENTER_PIN", .card())
            let gate = readers.gate { _, command in command.ins == 0x86 }
            await client.send(Self.setPIN)
            await gate.arrival()
            self.gate = gate
            _ = await client.exchange()
        case .pause:
            try await loseCardUntilPause()
        }
    }

    static let runAuth = #"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#
    static let setPIN = #"{"cmd":"SET_PIN","value":"123456"}"#

    /// Inserts the card, starts a workflow and waits for the question.
    private func ask(_ question: String, _ card: VirtualEIDDescription) async throws {
        try await server.insert(card)
        _ = try #require(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, question))
    }

    /// Loses the card in ten runs of PACE, after which the workflow pauses.
    private func loseCardUntilPause() async throws {
        // Seven commands identify the card, three open it, MSE:Set AT begins PACE.
        let card = VirtualEIDDescription.card {
            $0.options.faults = Array(repeating: .init(afterAPDU: 11, action: .remove), count: 10)
        }
        try await ask("ENTER_PIN", card)
        for loss in 1...10 {
            await client.send(Self.setPIN)
            guard loss < 10 else { break }
            _ = try #require(await client.next("INSERT_CARD"))
            try await server.insert()
            _ = try #require(await client.next("ENTER_PIN"))
        }
        // After the tenth loss PAUSE and READER without a card come in any order.
        var missing: Set = ["PAUSE", "READER"]
        while let message = await client.next("PAUSE", "READER"), let kind = message["msg"]?.string {
            if kind == "PAUSE" || message["card"] == .null { missing.remove(kind) }
            if missing.isEmpty { return }
        }
        throw ConnectionClosed()
    }

    /// The server closed the connection before the expected messages came.
    private struct ConnectionClosed: Error {}
}

extension SecretBox {
    convenience init(digits: String) { self.init(Secret(digits.utf8)) }
}
