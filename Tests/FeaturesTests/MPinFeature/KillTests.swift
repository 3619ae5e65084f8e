// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Foundation
import Glibc
import HDWallet
import HTTP
import Host
import TestSupport
import Testing
import Text
import VirtualKeycard

/// The program badged with a store, killed at each step of a dialogue with the M-Pin servers. Without
/// `FullTables.areWanted` some rows run, with each pair of a command and a kind of silence.
@Suite("M-Pin when badged is killed", .timeLimit(.minutes(10)), .serialized)
@Loop struct KillTests {
    /// What badged waits for when it is killed.
    private struct Moment: Sendable, CustomTestStringConvertible {
        let command: String
        /// A fault of the server, at which badged waits; nil: badged asks for the PIN.
        let fault: String?
        var testDescription: String { "\(command), \(fault ?? "its question")" }

        init(_ command: String, _ fault: String?) { (self.command, self.fault) = ("MPIN_" + command, fault) }
    }

    private nonisolated static let moments = [
        Moment("SET_BACKEND", "settings-hang@1"),
        Moment("START_REGISTRATION", "register-hang@1"), Moment("START_REGISTRATION", "register-lost@1"),
        Moment("CONFIRM_REGISTRATION", "signature-hang@1"), Moment("CONFIRM_REGISTRATION", "signature-lost@1"),
        Moment("CONFIRM_REGISTRATION", "secret-hang@1"), Moment("CONFIRM_REGISTRATION", "secret-lost@1"),
        Moment("FINISH_REGISTRATION", nil),
        Moment("START_AUTHENTICATION", "permit-hang@1"), Moment("START_AUTHENTICATION", "permit2-lost@1"),
        Moment("FINISH_AUTHENTICATION", nil),
        Moment("FINISH_AUTHENTICATION", "pass1-hang@1"), Moment("FINISH_AUTHENTICATION", "pass1-lost@1"),
        Moment("FINISH_AUTHENTICATION", "pass2-hang@1"), Moment("FINISH_AUTHENTICATION", "pass2-lost@1"),
        Moment("FINISH_AUTHENTICATION", "login-hang@1"), Moment("FINISH_AUTHENTICATION", "login-lost@1"),
    ]

    private nonisolated static var chosen: [Moment] {
        FullTables.rows(of: moments) { [$0.command, $0.fault.map { $0.hasSuffix("hang@1") ? "hang" : "lost" } ?? ""] }
    }

    @Test("the dialogue goes on, or badged says that the registration must be restarted", arguments: chosen)
    private func request(moment: Moment) async throws {
        let user = try await KilledUser(fault: moment.fault ?? "none")
        for command in KilledUser.commands {
            if command == moment.command { break }
            #expect(try await user.status(command) == "OK", "\(command)")
        }
        try await user.begin(moment.command)
        if moment.fault != nil {
            if moment.command == "MPIN_FINISH_AUTHENTICATION" { try await user.answerQuestion() }
            try await user.waitForArrival()
        } else {
            try await user.waitForQuestion()
        }
        try await user.killAndRestart()
        try await user.goOn()
    }

    @Test("a PIN is kept with its token, or not at all", arguments: 1...(FullTables.areWanted ? 6 : 2))
    func answer(round: Int) async throws {
        let user = try await KilledUser(fault: "none")
        for command in KilledUser.commands.prefix(4) { #expect(try await user.status(command) == "OK", "\(command)") }
        try await user.begin("MPIN_FINISH_REGISTRATION")
        try await user.answerQuestion()
        // The token is being computed, or is in the store already.
        if round.isMultiple(of: 2) { _ = await user.client.next("MPIN_RESULT") }
        try await user.killAndRestart()
        let state = try await user.state()
        #expect(state == "REGISTERED" || !round.isMultiple(of: 2) && state == "ACTIVATED")
        try await user.goOn()
    }

    @Test("with a card, before and after its PIN", arguments: ["INSERT_CARD", "ENTER_PIN", "ENTER_NEW_PIN"])
    func card(question: String) async throws { _ = try await Self.cardUser(killedAt: question) }

    @Test(
        "after the login the daemon has neither the key of the card nor the token",
        .enabled(if: DaemonProcess.canReadMemory)
    )
    func memory() async throws {
        let user = try await Self.cardUser(killedAt: "ENTER_PIN")
        _ = await user.client.exchange(#"{"cmd":"GET_STATUS"}"#)
        #expect(try user.occurrences(of: KilledUser.cardKey()) == 0)
        // The search itself works.
        #expect(try user.occurrences(of: Array("GET_STATUS".utf8)) > 0)
    }

    /// A user with a card who has logged in, after badged was killed at a question of the registration.
    private static func cardUser(killedAt question: String) async throws -> KilledUser {
        let user = try await KilledUser(fault: "none", usesCard: true)
        for command in KilledUser.commands.prefix(4) { #expect(try await user.status(command) == "OK", "\(command)") }
        try await user.begin("MPIN_FINISH_REGISTRATION")
        while let message = await user.client.next(), message["msg"]?.string != question {
            if let answer = user.answer(to: message) { await user.client.send(answer) }
        }
        try await user.killAndRestart()
        try await user.goOn()
        return user
    }
}

/// A user of badged who begins again after each start of the program.
@Loop private final class KilledUser {
    static let commands = [
        "MPIN_SET_BACKEND", "MPIN_MAKE_USER", "MPIN_START_REGISTRATION", "MPIN_CONFIRM_REGISTRATION",
        "MPIN_FINISH_REGISTRATION", "MPIN_START_AUTHENTICATION", "MPIN_FINISH_AUTHENTICATION",
    ]
    private static let words = Array(repeating: "abandon", count: 11).joined(separator: " ") + " about"

    /// The program badged waits 30 s for an answer, which is too short behind the pairings of all other tests.
    private static let ownServers = Task { try await LoginServers() }

    private let folder: TemporaryFolder
    private let servers: LoginServers
    private let url: String
    private let usesCard: Bool
    private var daemon: DaemonProcess
    private(set) var client: TestClient

    init(fault: String, usesCard: Bool = false) async throws {
        folder = try TemporaryFolder()
        servers = try await Self.ownServers.value
        url = servers.url(fault)
        self.usesCard = usesCard
        daemon = try await Self.start(folder)
        client = try daemon.connect()
        await initialise()
    }

    private static func start(_ folder: TemporaryFolder) async throws -> DaemonProcess {
        let authority = Hex.encode(try VirtualKeycardDescription.authority().publicKey.compressed)
        return try await DaemonProcess(
            configuration:
                "[access]\ndefault = readers, cards, mpin\n[mpin]\nprivate_servers = yes\n[wallet]\ncard_authorities = \(authority)\n",
            environment: ["STATE_DIRECTORY": folder.path]
        )
    }

    private func initialise() async {
        #expect(await client.ask(#"{"cmd":"MPIN_INIT"}"#, "MPIN_RESULT")?.status == "OK")
    }

    /// Kills the program without a warning, and starts it with the same store.
    func killAndRestart() async throws {
        daemon.signal(SIGKILL)
        _ = await daemon.exitCode()
        client.close()
        daemon = try await Self.start(folder)
        client = try daemon.connect()
        await initialise()
        let status = try await status("MPIN_SET_BACKEND")
        #expect(status == "OK")
    }

    private var members: String { #""userId":"alice@mpin.test","url":"\#(url)","card":\#(usesCard)"# }

    func begin(_ command: String) async throws {
        await client.send(#"{"cmd":"\#(command)",\#(members)}"#)
    }

    /// The answer of the user to a message; nil for a message that asks nothing.
    func answer(to message: JSON) -> String? {
        switch message["msg"]?.string {
        case "INSERT_CARD":
            #"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"keycard","words":"\#(Self.words)"}}"#
        case "ENTER_PIN" where message["reader"] != nil: #"{"cmd":"SET_PIN","value":"123456"}"#
        case "ENTER_PIN": #"{"cmd":"SET_PIN","value":"1234"}"#
        case "ENTER_NEW_PIN": #"{"cmd":"SET_NEW_PIN","value":"1234"}"#
        default: nil
        }
    }

    func waitForQuestion() async throws { _ = try #require(await client.next("ENTER_PIN", "ENTER_NEW_PIN")) }

    func answerQuestion() async throws {
        let question = try #require(await client.next("ENTER_PIN", "ENTER_NEW_PIN"))
        await client.send(try #require(answer(to: question)))
    }

    /// Returns when the request with the fault has reached the server.
    func waitForArrival() async throws { try await servers.arrival(below: url) }

    func run(_ command: String) async throws -> JSON {
        try await begin(command)
        for _ in 0..<64 {
            let message = try #require(await client.next())
            if message["msg"]?.string == "MPIN_RESULT" { return message }
            if let answer = answer(to: message) { await client.send(answer) }
        }
        Issue.record("\(command) asks without end")
        return .null
    }

    func status(_ command: String) async throws -> String { try await run(command).status ?? "no result" }

    func state() async throws -> String? {
        await client.ask(#"{"cmd":"MPIN_USERS"}"#, "MPIN_RESULT")?["users"]?.array?.first?["state"]?.string
    }

    /// Does what the state and the errors say, until a login has succeeded.
    func goOn() async throws {
        if try await state() == nil { #expect(try await status("MPIN_MAKE_USER") == "OK") }
        if try await state() == "INVALID" { #expect(try await status("MPIN_START_REGISTRATION") == "OK") }
        if try await state() != "REGISTERED" {
            for command in ["MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION"] {
                let result = try await run(command)
                guard result.status != "OK" else { continue }
                #expect(result["errorMessage"]?.string?.contains("MPIN_RESTART_REGISTRATION") == true, "\(result)")
                for command in ["RESTART", "CONFIRM", "FINISH"] {
                    #expect(try await status("MPIN_\(command)_REGISTRATION") == "OK", "\(command)")
                }
                break
            }
        }
        #expect(try await state() == "REGISTERED")
        // No wrong PIN was counted: the third one would block the user.
        for command in Self.commands.suffix(2) { #expect(try await status(command) == "OK", "\(command)") }
    }

    /// The key under which the card seals tokens: m/43'/60'/1581'/1836083566'/0 of the words.
    static func cardKey() throws -> [UInt8] { try KeycardKeys.token(of: words) }

    /// How often the memory of the daemon has these bytes.
    func occurrences(of bytes: [UInt8]) throws -> Int { try daemon.occurrences(of: bytes) }
}
