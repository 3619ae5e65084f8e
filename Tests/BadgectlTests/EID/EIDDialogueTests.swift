// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing

@Suite("badgectl: the dialogue and the terminal", .timeLimit(.minutes(5))) struct DialogueTests {
    @Test("With a piped standard output the terminal shows who asks, a wrong PIN and the tries that are left")
    func pipedOutput() async throws {
        let peer = try ScriptedPeer.acceptedAuthentication { peer in
            peer.send(Say.insertCard)
            peer.answer("GET_READER_LIST", Say.list(Say.reader(left: nil)))
            peer.ask("PIN")
            peer.send(Say.event(Say.reader(left: 2)))
            peer.ask("PIN", Say.reader(left: 2))
            peer.send(Say.authenticated)
        }
        let program = try badgectl(peer, "auth", "https://a.example/token", hasTerminal: true)
        for text in ["website  https://a.example\r\n", "The service asks for:\r\n", "Agree? "] {
            #expect(await program.prints(text))
        }
        program.type("y\n")
        #expect(await program.prints("Put the ID card on the reader.\r\n"))
        #expect(await program.prints("PIN: ", typing: "111111\n"))
        #expect(await program.prints("That PIN was wrong.\r\n2 tries are left.\r\nPIN: ", typing: "123456\n"))
        await program.ends(0, printing: "https://a.example/back?ResultMajor=ok\n")
        #expect(program.text(.error) == "")
    }

    @Test("With --pin-stdin and a terminal, the terminal is asked for the consent")
    func consentOfScript() async throws {
        let peer = try ScriptedPeer.acceptedAuthentication(asking: "PIN") { $0.send(Say.authenticated) }
        let program = try badgectl(
            peer,
            "auth",
            "https://a.example/token",
            "--pin-stdin",
            input: "123456\n",
            hasTerminal: true
        )
        #expect(await program.prints("The service asks for:\r\n"))
        #expect(await program.prints("Agree? ", typing: "y\n"))
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(values(await peer.received()) == ["SET_PIN 123456"])
    }

    @Test("From the start to the end of a dialogue the terminal shows no digit that is typed")
    func noEcho() async throws {
        let steps = (0..<4).map { _ in AsyncStream.makeStream(of: Void.self) }
        let resume = (0..<4).map { _ in Gate() }
        let peer = try ScriptedPeer { peer in
            // Before the first question
            peer.start()
            steps[0].continuation.finish()
            resume[0].wait()
            peer.ask("PIN")
            // While the card checks the PIN
            steps[1].continuation.finish()
            resume[1].wait()
            // A question that the card ends by leaving
            peer.send(Say.enter("CAN", Say.reader(left: 1)))
            steps[2].continuation.finish()
            resume[2].wait()
            peer.send(Say.event(Say.reader(left: nil)))
            peer.needCard()
            steps[3].continuation.finish()
            resume[3].wait()
            peer.send(Say.failed("Card_Removed"))
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        for await _ in steps[0].stream {}
        #expect(!program.echoes, "before the first question")
        resume[0].open()
        #expect(await program.prints("PIN: ", typing: "123456\n"))
        #expect(await program.prints("checking the PIN"))
        for await _ in steps[1].stream {}
        #expect(!program.echoes, "while the card works")
        resume[1].open()
        #expect(await program.prints("\nCAN: "))
        for await _ in steps[2].stream {}
        #expect(!program.echoes, "while a question is open")
        resume[2].open()
        #expect(await program.prints("Put the ID card on the reader."))
        for await _ in steps[3].stream {}
        #expect(!program.echoes, "after the card has left")
        resume[3].open()
        #expect(await program.exitCode == 1)
        #expect(program.echoes)
        #expect(!program.everything.contains("123456"))
        #expect(values(await peer.received()) == ["SET_PIN 123456"])
    }

    @Test("When badged is killed, a line that is half typed is dropped to its end, and the shell gets nothing of it")
    func killed() async throws {
        let daemon = try ScriptedPeer.authentication { $0.command("CANCEL") }
        // The shell's next program reads what badgectl leaves on the terminal.
        let badgectl = "\(RunningProgram.programs)/badgectl --socket \(daemon.path) auth https://a.example/token"
        let program = try RunningProgram(
            "/bin/sh",
            ["-c", "\(badgectl) </dev/tty; echo ended >/dev/tty; exec head -n 1 </dev/tty"],
            hasTerminal: true
        )
        // This question shows what is typed, so the test knows when the terminal has it.
        #expect(await program.prints("Agree? ", typing: "123"))
        #expect(await program.prints("123"))
        daemon.close()
        let error = "badgectl: error: badged has closed the connection: the service got no data\n"
        #expect(await program.prints(error, on: .error))
        #expect(await program.prints("Press Return: badgectl discards what you have typed.", typing: "456\n"))
        #expect(await program.prints("ended", typing: "next\n"))
        await program.ends(0, printing: "next\n")
        #expect(!program.text(.terminal).contains("456"))
    }

    @Test("SIGUSR1 and SIGALRM restore the terminal, too", arguments: [SIGUSR1, SIGALRM])
    func otherSignals(number: Int32) async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("PIN", Say.reader()))
            peer.endCancelled()
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        #expect(await program.prints("PIN: "))
        program.signal(number)
        #expect(await program.exitCode == 128 + number)
        #expect(program.echoes)
    }

    @Test("Lines on a terminal of unknown width have at most 80 columns")
    func columns() async throws {
        let long = Say.certificate.replacing("Test", with: String(repeating: "a long purpose ", count: 20))
        let peer = try ScriptedPeer { peer in
            peer.beginAuth()
            peer.send(Say.rights())
            peer.answer("GET_CERTIFICATE", long)
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
        }
        let program = try badgectl(peer, "auth", "https://a.example/token", hasTerminal: true, columns: 0)
        #expect(await program.prints("Agree? ", typing: "\n"))
        #expect(await program.exitCode == 1)
        let lines = program.dialogue.split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("         a long") || $0.hasPrefix("         purpose") })
    }

    @Test("Ctrl-C ends the agent, also while it waits for the end of a line that is half typed")
    func interruptedWait() async throws {
        let hasTyped = Gate()
        let peer = try ScriptedPeer { peer in
            peer.servesBrowsers()
            peer.send(#"{"msg":"AUTH"}"#)
            peer.send(Say.rights())
            peer.answer("GET_CERTIFICATE", Say.certificate)
            hasTyped.wait()
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"Browser_Send_Failed"}}"#)
        }
        let program = try badgectl(peer, "agent", hasTerminal: true)
        #expect(await program.prints("Agree? ", typing: "123"))
        #expect(await program.prints("123"))
        hasTyped.open()
        #expect(await program.prints("Press Return: "))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(program.echoes)
    }
}
