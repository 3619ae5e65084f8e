// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing

@Suite("badgectl: change-pin at the terminal", .timeLimit(.minutes(5))) struct ChangePINTests {
    @Test("change-pin asks for PIN and new PIN without echo, sends each once, and reports the change")
    func happy() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN", "NEW_PIN") { $0.send(Say.changed) }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        await answer(program, "PIN: ", "123456")
        await answer(program, "New PIN: ", "654321")
        await answer(program, "Repeat the new PIN: ", "654321")
        #expect(await program.exitCode == 0)
        #expect(program.echoes)
        #expect(values(await peer.received()) == ["SET_PIN 123456", "SET_NEW_PIN 654321"])
        #expect(program.text(.output) == "The PIN has been changed.\n")
        #expect(
            program.dialogue.split(separator: "\n") == [
                "PIN: ", "Leave the card on the reader: checking the PIN ...", "New PIN: ", "Repeat the new PIN: ",
                "Leave the card on the reader: changing the PIN ...",
            ]
        )
        #expect(!program.everything.contains("123456") && !program.everything.contains("654321"))
    }

    @Test("From the first wrong PIN to the PUK, each step is explained before its question")
    func allSteps() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN") { peer in
            for (kind, left) in [("PIN", 2), ("CAN", 1), ("CAN", 1), ("PIN", 1), ("PUK", 0), ("PUK", 0), ("PIN", 3)] {
                peer.send(Say.event(Say.reader(left: left)))
                peer.ask(kind, Say.reader(left: left))
            }
            peer.ask("NEW_PIN")
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        let secrets = [
            "111111", "222222", "333333", "500540", "444444", "1111111111", "9876543210", "123456", "777777",
        ]
        for (question, secret) in zip(
            ["PIN: ", "\nPIN: ", "\nCAN: ", "\nCAN: ", "\nPIN: ", "\nPUK: ", "\nPUK: ", "\nPIN: "],
            secrets
        ) {
            await answer(program, question, secret)
        }
        await answer(program, "New PIN: ", "777777")
        await answer(program, "Repeat the new PIN: ", "777777")
        #expect(await program.exitCode == 0)
        let said = program.dialogue.split(separator: "\n").filter {
            !$0.hasPrefix("Leave the card") && !$0.hasSuffix(": ")
        }
        #expect(program.text(.output) == "The PIN has been changed.\n")
        #expect(
            said == [
                "That PIN was wrong.", "2 tries are left.",
                "That PIN was wrong.",
                "One PIN try is left. First enter the CAN: the 6 digits at the bottom right of the card's front.",
                "That CAN was wrong.",
                "This is the last try. Another wrong PIN blocks the PIN, and then you need the PUK.",
                "That PIN was wrong.",
                "The PIN is blocked. The PUK unblocks it: 10 digits, in the letter that came with the card.",
                "That PUK was wrong.",
                "The PIN is unblocked and has 3 tries again.",
            ]
        )
        #expect(await peer.commands().count { $0.hasPrefix("SET_") } == 9)
        for secret in secrets { #expect(!program.everything.contains(secret)) }
    }

    @Test("A value of the wrong form is asked for again, and is not sent")
    func malformed() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN", "NEW_PIN") { $0.send(Say.changed) }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        for wrong in ["", "1234", "1234567", "12345x", String(repeating: "1", count: 1000)] {
            await answer(program, "PIN: ", wrong)
            #expect(await program.prints("The PIN has 5 or 6 digits."))
        }
        await answer(program, "PIN: ", "12345")
        await answer(program, "New PIN: ", "12345")
        #expect(await program.prints("The new PIN has 6 digits."))
        await answer(program, "New PIN: ", "111111")
        await answer(program, "Repeat the new PIN: ", "111112")
        #expect(await program.prints("You have typed two different values."))
        await answer(program, "New PIN: ", "222222")
        await answer(program, "Repeat the new PIN: ", "222222")
        #expect(await program.exitCode == 0)
        #expect(values(await peer.received()) == ["SET_PIN 12345", "SET_NEW_PIN 222222"])
    }

    @Test(
        "A signal cancels, waits for the end, restores the echo, and sets the exit status",
        arguments: [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
    )
    func signal(number: Int32) async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("PIN", Say.reader()))
            peer.endCancelled()
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        #expect(await program.prints("PIN: "))
        if number == SIGINT { program.type("1234\u{3}") } else { program.signal(number) }
        #expect(await program.exitCode == 128 + number)
        #expect(program.echoes)
        #expect(program.dialogue.hasSuffix("\nCancelling.\n"))
        #expect(program.text(.output) == "")
        #expect(program.text(.error) == "badgectl: error: interrupted: the PIN was not changed\n")
        #expect(await peer.commands() == ["RUN_CHANGE_PIN", "CANCEL"])
        #expect(!program.everything.contains("1234"))
    }

    @Test("A signal while the card works cancels, too, and the result is reported as it is")
    func signalWhileWorking() async throws {
        let arrival = AsyncStream.makeStream(of: Void.self)
        let peer = try ScriptedPeer.pinChange(asking: "PIN", "NEW_PIN") { peer in
            arrival.continuation.finish()
            peer.command("CANCEL")
            // The card has changed the PIN before the CANCEL.
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        await answer(program, "PIN: ", "123456")
        await answer(program, "New PIN: ", "654321")
        await answer(program, "Repeat the new PIN: ", "654321")
        #expect(await program.prints("changing the PIN ...\r\n"))
        // badgectl writes the line before it sends the PIN.
        for await _ in arrival.stream {}
        #expect(await program.exitCode(after: SIGINT) == 0)
        #expect(program.dialogue.hasSuffix("Cancelling.\n"))
        #expect(program.text(.output) == "The PIN has been changed.\n")
    }

    @Test("After a signal an uncertain end is reported as uncertain, not as unchanged")
    func uncertainAfterSignal() async throws {
        let arrival = AsyncStream.makeStream(of: Void.self)
        let peer = try ScriptedPeer.pinChange(asking: "PIN", "NEW_PIN") { peer in
            arrival.continuation.finish()
            peer.command("CANCEL")
            peer.send(Say.failed("Change_Pin_No_SetEidPinCommand_Response"))
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin", input: "123456\n654321\n")
        for await _ in arrival.stream {}
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(program.text(.error).contains("it may have the old PIN or the new one\nhint: "))
        #expect(!program.text(.error).contains("was not changed"))
    }

    @Test("When badged closes during the change, the failure says that the PIN is uncertain")
    func uncertainAfterEnd() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN", "NEW_PIN") { $0.hangUp() }
        let program = try badgectl(peer, "change-pin", "--pin-stdin", input: "123456\n654321\n")
        #expect(await program.exitCode == 3)
        let start = "badgectl: error: badged has closed the connection during the change; the card may have the old PIN"
        #expect(program.text(.error).contains(start))
    }

    @Test("When badged closes while the PIN is checked, the failure says what has become of the PIN")
    func endOfCheck() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN") { $0.hangUp() }
        let program = try badgectl(peer, "change-pin", "--pin-stdin", input: "123456\n654321\n")
        await program.ends(
            3,
            saying: "badgectl: error: badged has closed the connection: the PIN was not changed; "
                + "a try may be spent if what was typed is wrong\n"
        )
    }

    @Test("After a second Ctrl-C during the change, the failure says that the PIN is uncertain")
    func uncertainAfterSecondSignal() async throws {
        let arrival = AsyncStream.makeStream(of: Void.self)
        let peer = try ScriptedPeer.pinChange(asking: "PIN", "NEW_PIN") { peer in
            arrival.continuation.finish()
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin", input: "123456\n654321\n")
        for await _ in arrival.stream {}
        program.signal(SIGINT)
        #expect(await program.prints("Cancelling.\n", on: .error))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(program.text(.error).contains("\nbadgectl: error: interrupted during the change; the card may have"))
    }

    @Test("When badged does not end the workflow, a second Ctrl-C ends the program")
    func secondSignal() async throws {
        let peer = try ScriptedPeer.pinChange { $0.send(Say.enter("PIN", Say.reader())) }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        #expect(await program.prints("PIN: ", typing: "\u{3}"))
        #expect(await program.prints("Cancelling.", typing: "\u{3}"))
        #expect(await program.exitCode == 130)
        #expect(program.echoes)
    }

    @Test("Ctrl-Z restores the echo, and afterwards the question is asked again")
    func stopped() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN") { $0.send(Say.failed("Card_Removed")) }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        #expect(await program.prints("PIN: ", typing: "\u{1A}"))
        await program.stops()
        #expect(program.echoes)
        program.signal(SIGCONT)
        await answer(program, "PIN: ", "123456")
        #expect(await program.exitCode == 1)
        #expect(program.echoes)
        #expect(values(await peer.received()) == ["SET_PIN 123456"])
    }

    @Test("Ctrl-D at a question cancels and ends with 1")
    func endOfInput() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("CAN", Say.reader(left: 1)))
            peer.endCancelled()
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        await answer(program, "\nCAN: ", "\u{4}")
        #expect(await program.exitCode == 1)
        #expect(program.echoes)
        #expect(program.text(.error).hasPrefix("badgectl: error: no more input: the PIN was not changed\nhint: "))
        #expect(values(await peer.received()) == [])
    }

    @Test("When badged closes during a question, badgectl restores the echo and ends with 3")
    func daemonGone() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("PIN", Say.reader()))
            peer.hangUp()
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        #expect(await program.exitCode == 3)
        #expect(program.echoes)
        let start = "badgectl: error: badged has closed the connection: the PIN was not changed\nhint: "
        #expect(program.text(.error).hasPrefix(start))
    }

    @Test("When badged withdraws a question, digits typed for it are not sent")
    func withdrawn() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("PIN", Say.reader()) + "\n" + Say.event(Say.reader(left: nil)))
            peer.needCard()
            peer.endCancelled()
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        #expect(await program.prints("Put the ID card on the reader.", typing: "123456\n"))
        program.type("\u{3}")
        #expect(await program.exitCode == 130)
        #expect(program.echoes)
        #expect(values(await peer.received()) == [])
    }

    @Test("badgectl shows why badged cannot use a card")
    func obstacle() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.needCard(Say.list(Say.reader("A", left: nil), Say.reader("B", left: nil)))
            peer.send(#"{"error":"The online function of this card is switched off","msg":"INSERT_CARD","reader":"A"}"#)
            peer.ask("PIN", Say.reader("B"))
            peer.send(Say.failed("Change_Pin_Unexpected_Transmit_Status"))
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        await answer(program, "PIN: ", "123456")
        #expect(await program.exitCode == 1)
        #expect(
            program.dialogue == """
                Put the ID card on the reader.
                A: The online function of this card is switched off.
                PIN:\u{20}
                Leave the card on the reader: checking the PIN ...

                """
        )
        #expect(program.text(.error).hasPrefix("badgectl: error: the card did not accept the new PIN\nhint: "))
    }

    @Test("After PAUSE, Return continues")
    func pause() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN") { peer in
            peer.send(#"{"cause":"BadCardPosition","msg":"PAUSE"}"#)
            peer.command("CONTINUE")
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        await answer(program, "PIN: ", "123456")
        await answer(program, "Press Return to continue: ", "")
        #expect(await program.exitCode == 0)
        #expect(
            program.dialogue.contains("The card has slipped. Put it flat on the middle of the reader.\n")
        )
    }

    @Test("With a keypad reader nothing is asked or sent here")
    func keypad() async throws {
        let reader = Say.reader("K", keypad: true)
        let peer = try ScriptedPeer.pinChange { peer in
            peer.ask("PIN", reader)
            peer.ask("PIN", Say.reader("K", left: 2, keypad: true))
            peer.ask("NEW_PIN", reader)
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin")
        #expect(await program.exitCode == 0)
        #expect(values(await peer.received()) == ["SET_PIN -", "SET_PIN -", "SET_NEW_PIN -"])
        #expect(
            program.text(.error) == """
                Enter the PIN on the keypad of the reader K.
                That PIN was wrong.
                2 tries are left.
                Enter the PIN on the keypad of the reader K.
                Enter the new PIN on the keypad of the reader K.

                """
        )
        #expect(program.text(.output) == "The PIN has been changed.\n")
    }

    @Test("When badged refuses a value, badgectl shows why and asks again")
    func refusedValue() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN") { peer in
            peer.send("{\"error\":\"No card inserted\",\"msg\":\"ENTER_PIN\",\"reader\":{\(Say.reader())}}")
            peer.command("SET_PIN")
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        await answer(program, "PIN: ", "123456")
        await answer(program, "PIN: ", "123456")
        #expect(await program.exitCode == 0)
        #expect(program.dialogue.contains("Not sent to the card: No card inserted.\n"))
    }
}
