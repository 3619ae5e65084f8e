// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import TestSupport
import Testing
import Text

/// badgectl and BadgedClient with badged and its virtual card.
@Suite("badgectl and badged", .timeLimit(.minutes(5))) struct RealDaemonTests {
    private let daemon: RunningDaemon

    init() async throws { daemon = try await RunningDaemon() }

    @Test("status, health and readers show the virtual reader")
    func queries() async throws {
        let folder = try TemporaryFolder()
        try folder.write("root.cvcert", TestPKI.file("cvca.cvcert"))
        try folder.write("badged.conf", Array("[eid]\ntrust_anchors = \(folder.path)\ndate = 2026-11-22\n".utf8))
        // Without Bluetooth on this host, health would report a failure.
        let daemon = try await RunningDaemon(["--no-ble", "--config", folder.path + "/badged.conf"])
        let status = try badgectl(daemon, "status")
        #expect(await status.exitCode == 0)
        #expect(status.text(.output).hasPrefix("badged "))
        #expect(
            status.text(.output).contains("\n  drivers  virtual\n  reader   Simulator: virtual card, not inserted\n")
        )
        #expect(await (try badgectl(daemon, "health")).exitCode == 0)
        let readers = try badgectl(daemon, "readers")
        await readers.ends(0, printing: "Simulator  virtual card, not inserted\n")
    }

    @Test("After a PIN change the old PIN is wrong and the new one is right")
    func change() async throws {
        let first = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n654321\n")
        #expect(await first.exitCode == 0, "\(first.everything)")
        // The next line was written as the new PIN. As the PIN it would cost a second try.
        let second = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n654321\n111111\n")
        await second.ends(1, saying: "badgectl: error: the PIN was wrong: the PIN was not changed\nhint: ")
        #expect(
            second.text(.error).hasPrefix(
                """
                Inserting the card of the virtual reader Simulator.
                Leave the card on the reader: checking the PIN ...
                That PIN was wrong.
                2 tries are left.
                badgectl: error: 
                """
            )
        )
        let third = try badgectl(daemon, "change-pin", "--pin-stdin", input: "654321\n111111\n")
        await third.ends(0, printing: "The PIN has been changed.\n")
    }

    @Test("After a wallet card and a document in the virtual reader, change-pin has its own card again, with its PIN")
    func otherKinds() async throws {
        let change = ["change-pin", "--pin-stdin"]
        let folder = try TemporaryFolder()
        let daemon = try await RunningDaemon(environment: ["STATE_DIRECTORY": folder.path])
        func run(_ arguments: [String], _ input: String) async throws -> RunningProgram {
            let program = try RunningProgram("badgectl", ["--socket", daemon.path] + arguments, input: input)
            _ = await program.exitCode
            return program
        }
        await (try await run(change, "123456\n654321\n")).ends(0, printing: "The PIN has been changed.\n")
        let document = try await run(["document", "--pin-stdin", "--groups", "1"], "654321\n")
        #expect(await document.exitCode == 7, "\(document.everything)")
        await (try await run(change, "654321\n111111\n")).ends(0, printing: "The PIN has been changed.\n")
        // A wallet card is there without its own setup.
        let wallet = try await run(["wallet", "pin", "--pin-stdin"], "123456\n222222\n")
        #expect(await wallet.exitCode == 0, "\(wallet.everything)")
        await (try await run(change, "111111\n333333\n")).ends(0, printing: "The PIN has been changed.\n")
        let again = try await run(["wallet", "pin", "--pin-stdin"], "222222\n333333\n")
        #expect(await again.exitCode == 0, "\(again.everything)")
    }

    @Test("A command that found the virtual reader busy goes on after the other client has left")
    func busyReader() async throws {
        let other = try badgectl(daemon, "send", input: nil)
        other.type(#"{"cmd":"RUN_CHANGE_PIN"}"# + "\n")
        #expect(await other.prints("INSERT_CARD", on: .output))
        other.type(#"{"cmd":"SET_CARD","name":"Simulator"}"# + "\n")
        #expect(await other.prints("ENTER_PIN", on: .output))
        let program = try badgectl(daemon, "change-pin", hasTerminal: true)
        #expect(await program.prints("Simulator"))
        other.type(#"{"cmd":"CANCEL"}"# + "\n")
        await answer(program, "PIN: ", "123456")
        await answer(program, "New PIN: ", "111111")
        await answer(program, "Repeat the new PIN: ", "111111")
        #expect(await program.exitCode == 0, "\(program.everything)")
        other.endInput()
        _ = await other.exitCode
    }

    @Test("A virtual card that cannot be used ends the command with a hint")
    func unusableCard() async throws {
        let other = try badgectl(daemon, "send", input: nil)
        other.type(#"{"cmd":"RUN_CHANGE_PIN"}"# + "\n")
        #expect(await other.prints("INSERT_CARD", on: .output))
        other.type(#"{"cmd":"SET_CARD","name":"Simulator","card":{"deactivated":true}}"# + "\n")
        #expect(await other.prints(#""error""#, on: .output))
        other.type(#"{"cmd":"CANCEL"}"# + "\n")
        other.endInput()
        _ = await other.exitCode
        let program = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n111111\n")
        await program.ends(1, saying: "cannot be used: the PIN was not changed\nhint: when badged is restarted")
    }

    @Test("The agent ends with what to do if badged serves no browsers")
    func noBrowsers() async throws {
        let program = try badgectl(daemon, "agent")
        await program.ends(
            4,
            saying: "badged serves no browsers: they are off in its configuration\nhint: as root: apt"
        )
    }

    @Test("Wrong PINs lead to the CAN, then to the PUK, and back to the PIN")
    func allSteps() async throws {
        let program = try badgectl(daemon, "change-pin", hasTerminal: true)
        let answers = [
            ("PIN", "000000"), ("PIN", "000001"), ("CAN", "000000"), ("CAN", "500540"), ("PIN", "000002"),
            ("PUK", "0000000000"), ("PUK", "9876543210"), ("PIN", "123456"), ("New PIN", "222222"),
            ("Repeat the new PIN", "222222"),
        ]
        for (question, value) in answers { await answer(program, "\n\(question): ", value) }
        #expect(await program.exitCode == 0, "\(program.everything)")
        let said = program.dialogue.split(separator: "\n").filter { line in
            !["Leave the card", "PIN: ", "CAN: ", "PUK: ", "New PIN: ", "Repeat "].contains { line.hasPrefix($0) }
        }.dropFirst()
        #expect(
            said.map { $0.prefix(22) } == [
                "That PIN was wrong.", "2 tries are left.", "That PIN was wrong.", "One PIN try is left. F",
                "That CAN was wrong.", "This is the last try. ", "That PIN was wrong.", "The PIN is blocked. Th",
                "That PUK was wrong.", "The PIN is unblocked a",
            ]
        )
    }

    @Test("Ctrl-C during a PIN change changes nothing, and the next PIN change succeeds")
    func terminal() async throws {
        let program = try badgectl(daemon, "change-pin", "--reader", "Simulator", hasTerminal: true)
        #expect(await program.prints("PIN: ", typing: "123456\n"))
        #expect(await program.prints("New PIN: ", typing: "\u{3}"))
        #expect(await program.exitCode == 130)
        #expect(program.echoes)
        let next = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n333333\n")
        #expect(await next.exitCode == 0, "\(next.everything)")
    }

    @Test("send passes a whole workflow, and waits for its end")
    func send() async throws {
        let program = try badgectl(daemon, "send", input: nil)
        program.type("{\"cmd\":\"GET_API_LEVEL\",\"request\":7}\n{\"cmd\":\"RUN_CHANGE_PIN\"}\n")
        #expect(await program.prints("INSERT_CARD", on: .output))
        program.type("{\"cmd\":\"SET_CARD\",\"name\":\"Simulator\"}\n")
        #expect(await program.prints("\"ENTER_PIN\"", on: .output))
        program.type("{\"cmd\":\"SET_PIN\",\"value\":\"123456\"}\n")
        #expect(await program.prints("\"ENTER_NEW_PIN\"", on: .output))
        program.type("{\"cmd\":\"SET_NEW_PIN\",\"value\":\"444444\"}\n")
        program.endInput()
        #expect(await program.exitCode == 0)
        let messages = program.text(.output).split(separator: "\n").compactMap { try? JSON($0.utf8) }
        let level = messages.first { $0["msg"] == .string("API_LEVEL") }
        #expect(level?["current"]?.int == 3 && level?["request"]?.int == 7)
        #expect(messages.last?["success"] == .bool(true))
    }

    @Test("When send ends with an open question, its status is 1 and the reader is free again")
    func sendUnanswered() async throws {
        let input = "{\"cmd\":\"RUN_CHANGE_PIN\"}\n{\"cmd\":\"SET_CARD\",\"name\":\"Simulator\"}\n"
        let program = try badgectl(daemon, "send", input: input)
        await program.ends(1, saying: "waits after ENTER_PIN")
        // badged notices the end of the program by itself, and then puts the card away.
        let watcher = try await DaemonConnection.connect(to: daemon.path)
        for await event in watcher.events {
            if let reader = event.message as? Reader, !reader.isBusy, reader.card == nil { break }
        }
        watcher.close()
        let next = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n555555\n")
        #expect(await next.exitCode == 0, "\(next.everything)")
    }

    @Test("readers --watch shows the card of another client's workflow")
    func watch() async throws {
        let watcher = try badgectl(daemon, "readers", "--watch")
        #expect(await watcher.prints("Simulator: virtual card, not inserted\n", on: .output))
        let program = try badgectl(daemon, "change-pin", "--pin-stdin", input: "123456\n666666\n")
        #expect(await watcher.prints("Simulator: eID card", on: .output))
        #expect(await watcher.prints("Simulator: virtual card, not inserted\n", on: .output))
        #expect(await program.exitCode == 0)
        #expect(await watcher.exitCode(after: SIGTERM) == 143)
    }

    @Test("When badged is killed, badgectl ends with 3")
    func killed() async throws {
        let program = try RunningProgram("badgectl", ["--socket", daemon.path, "change-pin"], hasTerminal: true)
        #expect(await program.prints("PIN: "))
        daemon.program.signal(SIGKILL)
        #expect(await program.exitCode == 3)
        #expect(program.echoes)
    }

    @Test("The library changes a PIN with single commands")
    func library() async throws {
        let folder = try TemporaryFolder()
        try folder.write("badged.conf", Array("[eid]\ntrust_anchors = \(folder.path)\n".utf8))
        // Without Bluetooth on this host, health would report a failure.
        let daemon = try await RunningDaemon(["--no-ble", "--config", folder.path + "/badged.conf"])
        let badged = try await DaemonConnection.connect(to: daemon.path)
        #expect(try await badged.info().protocolVersion == 1)
        #expect(try await badged.apiLevels() == APILevels(current: 3, available: [1, 2, 3]))
        #expect(try await badged.readers().map(\.name) == ["Simulator"])
        #expect(try await badged.reader(named: "nope").isAttached == false)
        #expect(try await badged.status() == WorkflowStatus())
        // No country authority is trusted here.
        let checks = try await badged.health()
        #expect(checks.filter { !$0.isOK }.map(\.name) == ["trustAnchors"])
        // badged-network is confined, too, and runs without readers and browsers.
        #expect(checks.contains { $0.name == "confinement" })
        await #expect(throws: ClientError.refused("Unknown level")) { try await badged.setAPILevel(9) }
        #expect(try await badged.request("NO_SUCH").message.refusal == .unknownCommand("NO_SUCH"))
        try await badged.startChangePIN()
        var result: Bool?
        for await event in badged.events {
            switch event.message {
            case is InsertCard: try await badged.setCard(in: "Simulator")
            case let question as SecretQuestion:
                try await badged.answer(question, Secret((question.kind == .pin ? "123456" : "777777").utf8))
            case let message as ChangePINMessage: result = message.outcome?.success
            default: continue
            }
            if result != nil { break }
        }
        #expect(result == true)
        #expect(try await badged.status() == WorkflowStatus())
        badged.close()
    }
}
