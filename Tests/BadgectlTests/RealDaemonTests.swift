// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Secrets
import TestSupport
import Testing
import Wire

/// badgectl and BadgedClient with badged itself and its virtual card.
@Suite("badgectl and badged", .timeLimit(.minutes(5))) struct RealDaemonTests {
    private func badgectl(_ daemon: RunningDaemon, _ arguments: String..., input: String? = "") throws -> RunningProgram
    {
        try RunningProgram("badgectl", ["--socket", daemon.path] + arguments, input: input)
    }

    @Test("status, health and readers show the virtual reader")
    func queries() async throws {
        // This host may have no Bluetooth, which health would say.
        let daemon = try await RunningDaemon(["--no-ble"])
        let status = try badgectl(daemon, "status")
        #expect(await status.exitCode == 0)
        #expect(status.text(.output).hasPrefix("badged "))
        #expect(status.text(.output).contains("\n  drivers  virtual\n  reader   Simulator: card on the shelf\n"))
        #expect(await (try badgectl(daemon, "health")).exitCode == 0)
        let readers = try badgectl(daemon, "readers")
        #expect(await readers.exitCode == 0)
        #expect(readers.text(.output) == "Simulator  card on the shelf\n")
    }

    @Test("a changed PIN is the new PIN")
    func change() async throws {
        let daemon = try await RunningDaemon()
        let first = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n654321\n")
        #expect(await first.exitCode == 0, "\(first.everything)")
        // The old one is wrong now; the new one is right.
        let second = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n654321\n111111\n")
        #expect(await second.exitCode == 0, "\(second.everything)")
        #expect(
            second.text(.output) == """
                Putting the card into the virtual reader Simulator.
                Leave the card on the reader: checking the PIN ...
                That PIN was wrong.
                2 tries are left.
                Leave the card on the reader: checking the PIN ...
                Leave the card on the reader: changing the PIN ...
                The PIN has been changed.

                """
        )
    }

    @Test("wrong PINs lead to the CAN, a third one to the PUK, and back to the PIN")
    func ladder() async throws {
        let daemon = try await RunningDaemon()
        let input = [
            "000000", "000001", "000000", "500540", "000002", "0000000000", "9876543210", "123456", "222222",
        ]
        let program = try badgectl(
            daemon,
            "change-pin",
            "--pin-stdin",
            input: input.joined(separator: "\n")
        )
        #expect(await program.exitCode == 0, "\(program.everything)")
        let said = program.text(.output).split(separator: "\n").filter { !$0.hasPrefix("Leave the card") }.dropFirst()
        #expect(
            said.map { $0.prefix(22) } == [
                "That PIN was wrong.", "2 tries are left.", "That PIN was wrong.", "One try is left for th",
                "That CAN was wrong.", "This is the last try: ", "That PIN was wrong.", "The PIN is blocked. Th",
                "That PUK was wrong.", "The PIN is unblocked a", "The PIN has been chang",
            ]
        )
    }

    @Test("on the terminal, with Ctrl-C in the middle: nothing changed, and the next one goes well")
    func terminal() async throws {
        let daemon = try await RunningDaemon()
        let program = try RunningProgram(
            "badgectl",
            ["--socket", daemon.path, "change-pin", "--reader", "Simulator"],
            hasTerminal: true
        )
        #expect(await program.says("PIN: "))
        program.type("123456\n")
        #expect(await program.says("New PIN: "))
        program.type("\u{3}")
        #expect(await program.exitCode == 130)
        #expect(program.echoes)
        let next = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n333333\n")
        #expect(await next.exitCode == 0, "\(next.everything)")
    }

    @Test("send talks the protocol, and waits until the workflow has ended")
    func send() async throws {
        let daemon = try await RunningDaemon()
        let program = try badgectl(daemon, "send", input: nil)
        program.type("{\"cmd\":\"GET_API_LEVEL\",\"request\":7}\n{\"cmd\":\"RUN_CHANGE_PIN\"}\n")
        #expect(await program.says("INSERT_CARD", on: .output))
        program.type("{\"cmd\":\"SET_CARD\",\"name\":\"Simulator\"}\n")
        #expect(await program.says("\"ENTER_PIN\"", on: .output))
        program.type("{\"cmd\":\"SET_PIN\",\"value\":\"123456\"}\n")
        #expect(await program.says("\"ENTER_NEW_PIN\"", on: .output))
        program.type("{\"cmd\":\"SET_NEW_PIN\",\"value\":\"444444\"}\n")
        program.endInput()
        #expect(await program.exitCode == 0)
        #expect(program.text(.output).contains(#"{"available":[1,2,3],"current":3,"msg":"API_LEVEL","request":7}"#))
        #expect(program.text(.output).hasSuffix(Say.changed + "\n"))
    }

    @Test("a question left open by the end of the input ends send with 1, and the reader is free again")
    func sendUnanswered() async throws {
        let daemon = try await RunningDaemon()
        let input = "{\"cmd\":\"RUN_CHANGE_PIN\"}\n{\"cmd\":\"SET_CARD\",\"name\":\"Simulator\"}\n"
        let program = try badgectl(daemon, "send", input: input)
        #expect(await program.exitCode == 1)
        #expect(program.text(.error).contains("waits after ENTER_PIN"))
        let next = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n555555\n")
        #expect(await next.exitCode == 0, "\(next.everything)")
    }

    @Test("a watcher sees the card come and go in another client's workflow, and that it is in use")
    func watch() async throws {
        let daemon = try await RunningDaemon()
        let watcher = try badgectl(daemon, "readers", "--watch")
        #expect(await watcher.says("Simulator: card on the shelf\n", on: .output))
        let program = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n666666\n")
        #expect(await watcher.says("Simulator: eID card", on: .output))
        #expect(await watcher.says("Simulator: card on the shelf\n", on: .output))
        #expect(await program.exitCode == 0)
        watcher.signal(SIGTERM)
        #expect(await watcher.exitCode == 143)
    }

    @Test("killing the daemon in the middle ends badgectl with 3")
    func killed() async throws {
        let daemon = try await RunningDaemon()
        let program = try RunningProgram("badgectl", ["--socket", daemon.path, "change-pin"], hasTerminal: true)
        #expect(await program.says("PIN: "))
        daemon.program.signal(SIGKILL)
        #expect(await program.exitCode == 3)
        #expect(program.echoes)
    }

    @Test("the library changes a PIN with the calls that its documentation shows")
    func library() async throws {
        // This host may have no Bluetooth, which health would say.
        let daemon = try await RunningDaemon(["--no-ble"])
        let badged = try await DaemonConnection.connect(to: daemon.path)
        #expect(try await badged.info().protocolVersion == 1)
        #expect(try await badged.apiLevels() == APILevels(current: 3, available: [1, 2, 3]))
        #expect(try await badged.readers().map(\.name) == ["Simulator"])
        #expect(try await badged.reader(named: "nope").isAttached == false)
        #expect(try await badged.status() == WorkflowStatus())
        #expect(try await badged.health().allSatisfy(\.isOK))
        await #expect(throws: ClientError.refused("Unknown level")) { try await badged.setAPILevel(9) }
        await #expect(throws: ClientError.unknownCommand("NO_SUCH")) {
            throw try #require(ClientError(try await badged.request("NO_SUCH").message))
        }
        try await badged.startChangePIN()
        var result: Bool?
        for await event in badged.events {
            switch event.message {
            case .insertCard: try await badged.setCard(in: "Simulator")
            case .enter(let question):
                try await badged.answer(question, Secret((question.kind == .pin ? "123456" : "777777").utf8))
            case .changePINEnded(let success, _): result = success
            default: continue
            }
            if result != nil { break }
        }
        #expect(result == true)
        #expect(try await badged.status() == WorkflowStatus())
        badged.close()
    }
}
