// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

@Suite("badgectl: change-pin in scripts", .timeLimit(.minutes(5))) struct ChangePINScriptTests {
    @Test("The values are read line by line in the order of the questions", arguments: ["\n", "\r\n"])
    func lines(end: String) async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.ask("CAN", Say.reader(left: 1))
            peer.ask("PIN", Say.reader(left: 1))
            peer.ask("NEW_PIN")
            peer.send(Say.changed)
        }
        let input = ["500540", "123456", "654321", "999999"].joined(separator: end)
        let program = try badgectl(peer, "change-pin", "--pin-stdin", input: input)
        #expect(await program.exitCode == 0)
        #expect(values(await peer.received()) == ["SET_CAN 500540", "SET_PIN 123456", "SET_NEW_PIN 654321"])
        for secret in ["500540", "123456", "654321", "999999"] { #expect(!program.everything.contains(secret)) }
    }

    @Test("With --json standard output has only the messages, and standard error only the failure")
    func json() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN") { peer in
            peer.send(Say.event(Say.reader(left: 2)))
            peer.send(Say.failed("Card_Removed"))
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin", "--json", input: "123456\n")
        #expect(await program.exitCode == 1)
        let lines = program.text(.output).split(separator: "\n").map(String.init)
        #expect(
            lines == [
                Say.started, Say.enter("PIN", Say.reader()), Say.event(Say.reader(left: 2)), Say.failed("Card_Removed"),
            ]
        )
        #expect(program.text(.error).hasPrefix("badgectl: error: the card was taken away\nhint: "))
        #expect(program.text(.error).split(separator: "\n").count == 2)
    }

    @Test(
        "A line that cannot be the answer cancels the workflow; the error has its number, not its text",
        arguments: [
            ("12345x\n", "line 1 of standard input is not a PIN of 5 or 6 digits"),
            ("\n123456\n", "line 1 of standard input is not a PIN of 5 or 6 digits"),
            ("123456\n1234\n", "line 2 of standard input is not a new PIN of 6 digits"),
            (String(repeating: "7", count: 5000) + "\n", "line 1 of standard input is not a PIN of 5 or 6 digits"),
            ("123456\n", "no more input: the PIN was not changed"),
            ("", "no more input: the PIN was not changed"),
        ]
    )
    func badLines(input: String, error: String) async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("PIN", Say.reader()))
            while let command = peer.command()?["cmd"]?.string {
                if command == "SET_PIN" { peer.send(Say.enter("NEW_PIN", Say.reader())) }
                if command == "CANCEL" { peer.send(Say.cancelled) }
            }
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin", input: input)
        await program.ends(1, saying: "badgectl: error: \(error)\nhint: ")
        #expect(await peer.commands().last == "CANCEL")
        for secret in ["12345x", "77777", "1234\n"] { #expect(!program.everything.contains(secret)) }
    }

    @Test("Without a terminal and without --pin-stdin nothing is sent to the card")
    func noTerminal() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(Say.enter("PIN", Say.reader()))
            peer.endCancelled()
        }
        let program = try badgectl(peer, "change-pin", input: "123456\n")
        await program.ends(1, sayingFirst: "badgectl: error: there is no terminal to ask on\nhint: ")
        #expect(values(await peer.received()) == [])
    }

    @Test(
        "The card of a virtual reader is inserted when no other reader is meant",
        arguments: [
            // readers, --reader, the reader whose card is inserted
            ([Say.reader("S", left: nil, insertable: true)], nil, "S"),
            ([Say.reader("A", left: nil), Say.reader("S", left: nil, insertable: true)], nil, "S"),
            ([Say.reader("A", left: 3), Say.reader("S", left: nil, insertable: true)], "S", "S"),
            ([Say.reader("A", left: 3), Say.reader("S", left: nil, insertable: true)], nil, nil),
            ([Say.reader("A", left: nil), Say.reader("S", left: nil, insertable: true)], "A", nil),
            ([Say.reader("S 2", left: nil, insertable: true), Say.reader("S", left: nil, insertable: true)], nil, "S"),
        ] as [([String], String?, String?)]
    )
    func virtualCard(readers: [String], wanted: String?, expected: String?) async throws {
        let list = "{\"msg\":\"READER_LIST\",\"readers\":[\(readers.map { "{\($0)}" }.joined(separator: ","))]}"
        let peer = try ScriptedPeer { peer in
            // The reader of the command line is looked for before anything is asked.
            if wanted != nil { peer.answer("GET_READER_LIST", list) }
            peer.start()
            peer.needCard(list)
            if expected != nil { peer.command("SET_CARD") }
            peer.ask("PIN")
            peer.send(Say.changed)
        }
        let arguments = ["--socket", peer.path, "change-pin", "--pin-stdin"] + (wanted.map { ["--reader", $0] } ?? [])
        let program = try RunningProgram("badgectl", arguments, input: "123456\n")
        #expect(await program.exitCode == 0)
        let received = await peer.received()
        #expect(received.count { $0.contains("SET_CARD") } == (expected == nil ? 0 : 1))
        if let expected {
            #expect(received.contains { $0.contains("SET_CARD") && $0.contains("\"name\":\"\(expected)\"") })
        }
        #expect(received.contains { $0.contains("\"reader\":\"\(wanted ?? "")\"") } == (wanted != nil))
    }

    @Test("A user who may not change a PIN gets the status 4, one who may not see readers can change it")
    func denied() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("RUN_CHANGE_PIN", #"{"error":"RUN_CHANGE_PIN","msg":"ACCESS_DENIED"}"#)
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin")
        await program.ends(4, sayingFirst: "badgectl: error: badged does not allow this to this user\n")
        let blind = try ScriptedPeer.pinChange { peer in
            peer.send(Say.insertCard)
            peer.answer("GET_READER_LIST", #"{"error":"GET_READER_LIST","msg":"ACCESS_DENIED"}"#)
            peer.ask("PIN")
            peer.send(Say.changed)
        }
        let other = try badgectl(blind, "change-pin", "--pin-stdin", input: "123456\n")
        await other.ends(0, sayingFirst: "Put the ID card on the reader.\n")
        #expect(other.text(.output) == "The PIN has been changed.\n")
    }

    @Test(
        "A refused start is an error",
        arguments: [
            (#"{"error":"Invalid name","msg":"CHANGE_PIN"}"#, "badged refused: Invalid name"),
            (#"{"error":"RUN_CHANGE_PIN","msg":"BAD_STATE"}"#, "badged cannot do this now"),
            (#"{"error":"Unexpected condition","msg":"INTERNAL_ERROR"}"#, "badged refused: Unexpected condition"),
        ]
    )
    func refused(message: String, error: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("RUN_CHANGE_PIN", message)
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin")
        await program.ends(1, saying: "badgectl: error: \(error)\nhint: ")
    }

    @Test("A badged that does not start says so to a command that begins with a workflow, with the way to the log")
    func notStarted() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(#"{"error":"badged does not start","msg":"INTERNAL_ERROR"}"#)
            peer.hangUp()
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin")
        let error = "badged does not serve this connection: badged does not start: the PIN was not changed"
        await program.ends(3, saying: "badgectl: error: \(error)\nhint: badged's log says why")
    }

    @Test("When the card slips, a script ends with 1 and says what to do")
    func pause() async throws {
        let peer = try ScriptedPeer.pinChange(asking: "PIN") { peer in
            peer.send(#"{"cause":"BadCardPosition","msg":"PAUSE"}"#)
            peer.endCancelled()
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin", input: "123456\n")
        await program.ends(1, saying: "\nbadgectl: error: the card has slipped on the reader\nhint: ")
    }

    @Test("Success with a reason, as other servers report it, is a failure")
    func halfSuccess() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(#"{"msg":"CHANGE_PIN","reason":"Change_Pin_Unexpected_Transmit_Status","success":true}"#)
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin")
        #expect(await program.exitCode == 1)
        #expect(!program.text(.output).contains("has been changed"))
    }

    @Test("A name that no reader has is an error before anything is asked, with the readers that are there")
    func unknownReader() async throws {
        let peer = try ScriptedPeer { peer in
            while let command = peer.command() {
                peer.send(Say.list(Say.reader("Simulator", left: nil)), answering: command)
            }
        }
        let program = try badgectl(peer, "change-pin", "--reader", "Simulatr", "--pin-stdin")
        #expect(await program.exitCode == 1)
        #expect(
            program.text(.error) == """
                badgectl: error: there is no reader Simulatr
                hint: did you mean Simulator? readers: Simulator; --timeout waits for a reader

                """
        )
        #expect(Set(await peer.commands()) == ["GET_READER_LIST"])
    }

    @Test("With --timeout a workflow that gets no card is cancelled, with 1")
    func timeout() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.needCard()
            peer.endCancelled()
        }
        let program = try badgectl(peer, "change-pin", "--reader", "R 2", "--timeout", "0.1", "--pin-stdin")
        #expect(await program.exitCode == 1)
        let error = "badgectl: error: no usable card came within 0.1 s: the PIN was not changed\nhint: "
        #expect(program.text(.error).contains(error))
        #expect(await peer.commands().last == "CANCEL")
    }

    @Test("A card ends the time of --timeout")
    func timeoutWithCard() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.needCard()
            peer.ask("PIN")
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", "--timeout", "3600", "--pin-stdin", input: "123456\n")
        #expect(await program.exitCode == 0)
    }
}
