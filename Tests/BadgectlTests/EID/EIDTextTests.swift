// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

@testable import BadgedClient
@testable import badgectl

@Suite("badgectl: texts about eID cards", .timeLimit(.minutes(5))) struct EIDTextTests {
    @Test("After the card was away, the value is asked for again and not called wrong")
    func cardAway() async throws {
        for (kind, left, digits) in [("PIN", 3, "123456"), ("CAN", 1, "500540"), ("PUK", 0, "9876543210")] {
            let peer = try ScriptedPeer.pinChange { peer in
                peer.ask(kind, Say.reader(left: left))
                peer.send(Say.event(Say.reader(left: nil)))
                peer.needCard()
                peer.send(Say.event(Say.reader(left: left)))
                peer.ask(kind, Say.reader(left: left))
                peer.send(Say.changed)
            }
            let program = try badgectl(peer, "change-pin", hasTerminal: true)
            await answer(program, kind == "PIN" ? "PIN: " : "\n\(kind): ", digits)
            await answer(program, "\n\(kind): ", digits)
            #expect(await program.exitCode == 0)
            let said = program.dialogue.split(separator: "\n").map(String.init)
            #expect(said.contains("The card has left the reader."))
            #expect(said.contains("The card left before it answered. The \(kind) is needed again."))
            #expect(!program.everything.contains("wrong"))
            #expect(values(await peer.received()) == ["SET_\(kind) \(digits)", "SET_\(kind) \(digits)"])
        }
    }

    @Test("A value to which the card gave no answer is not called unsent", arguments: [("CAN", 1, 6), ("PUK", 0, 10)])
    func unanswered(kind: String, left: Int, digits: Int) async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.ask(kind, Say.reader(left: left))
            peer.send(Say.unanswered(kind, left: left))
            peer.command("SET_\(kind)")
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        let value = String(repeating: "1", count: digits)
        await answer(program, "\n\(kind): ", value)
        await answer(program, "\n\(kind): ", value)
        #expect(await program.exitCode == 0)
        // The terminal breaks the line.
        #expect(program.dialogue.replacing("\n", with: " ").contains(" \(Say.noAnswer). "))
        #expect(!program.everything.contains("Not sent"))
    }

    @Test("The window for the PIN describes the service in a few short lines, whatever is in its certificate")
    func summary() {
        let forged = ServiceCertificate(subjectName: "A\u{1B}[2J\r\nWebsite: other", subjectURL: "https://a.example")
        #expect(ConsentText.summary(forged) == "Service: A[2J Website: other\nWebsite: https://a.example")
        let long = ServiceCertificate(
            subjectName: String(repeating: "\u{1F600}", count: 500),
            subjectURL: "https://a.example",
            purpose: String(repeating: "a word ", count: 100)
        )
        let text = ConsentText.summary(long)
        #expect(text.contains("...\nWebsite: https://a.example\nPurpose: a word a word"))
        #expect(text.count < 300 && Pinentry.escaped(text).utf8.count < 700)
        // A name of one character that is longer than a line of pinentry does not hide the rows below it.
        let marks = ServiceCertificate(
            subjectName: "A" + String(repeating: "\u{301}", count: 2000),
            subjectURL: "https://a.example"
        )
        #expect(Pinentry.escaped(ConsentText.summary(marks)).hasSuffix("Website: https://a.example"))
    }

    @Test("A CAN that opens the card is not asked for because of a last try", arguments: [true, false])
    func opensWithCAN(isGranted: Bool) async throws {
        let right = isGranted ? "CanAllowed" : "Address"
        let rights = #"{"aux":null,"chat":{"effective":["\#(right)"],"optional":[],"required":["\#(right)"]},"#
        let peer = try ScriptedPeer { peer in
            peer.beginAuth()
            peer.send(rights + #""msg":"ACCESS_RIGHTS"}"#)
            peer.answer("GET_CERTIFICATE", Say.certificate)
            peer.command("ACCEPT")
            peer.ask("CAN", Say.reader(left: 1))
            peer.send(Say.authenticated)
        }
        let program = try badgectl(peer, "auth", "https://a.example/token", "--yes", hasTerminal: true)
        await answer(program, "\nCAN: ", "500540")
        #expect(await program.exitCode == 0)
        #expect(program.dialogue.contains("The service accepts the CAN") == isGranted)
        #expect(program.dialogue.contains("One PIN try is left") == !isGranted)
    }

    @Test("After an error with a keypad, badgectl waits for Return before the next try")
    func keypadError() async throws {
        let reader = Say.reader("K", keypad: true)
        let peer = try ScriptedPeer.pinChange { peer in
            peer.ask("PIN", reader)
            peer.send("{\"error\":\"No card inserted\",\"msg\":\"ENTER_PIN\",\"reader\":{\(reader)}}")
            peer.command("SET_PIN")
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", hasTerminal: true)
        #expect(await program.prints("Not sent to the card: No card inserted.\r\n"))
        #expect(await program.prints("Press Return to continue: ", typing: "\n"))
        #expect(await program.exitCode == 0)
        #expect(values(await peer.received()) == ["SET_PIN -", "SET_PIN -"])
    }

    @Test("The card of a virtual reader is inserted at most ten times")
    func leavingCard() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            for _ in 0..<20 { peer.needCard(Say.list(Say.reader("S", left: nil, insertable: true))) }
            peer.send(Say.failed("Card_Removed"))
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin")
        #expect(await program.exitCode == 1)
        #expect(await peer.commands().count { $0 == "SET_CARD" } == 10)
    }

    @Test(
        "BAD_STATE for a late answer does not end the workflow",
        arguments: ["SET_PIN", "SET_CARD", "CONTINUE"]
    )
    func crossed(command: String) async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            peer.send(#"{"error":"\#(command)","msg":"BAD_STATE"}"#)
            peer.send(Say.changed)
        }
        #expect(await (try badgectl(peer, "change-pin", "--pin-stdin")).exitCode == 0)
    }

    @Test(
        "The request for a card depends on the readers",
        arguments: [
            (nil, [], "No reader is connected. Connect one, then put the ID card on it."),
            (nil, ["A"], "Put the ID card on the reader."),
            ("A", ["A", "B"], "Put the ID card on the reader A."),
            ("C", ["A", "B"], "There is no reader C. Connect it. Connected readers: A, B."),
            ("C", [], "There is no reader C. Connect it."),
            (nil, nil, "Put the ID card on the reader."), ("C", nil, "Put the ID card on the reader C."),
        ] as [(String?, [String]?, String)]
    )
    func insertCard(wanted: String?, names: [String]?, words: String) {
        #expect(CommandLineUser.insertCard(wanted: wanted, readers: names?.map { Reader(name: $0) }) == words)
    }

    @Test("Progress is shown when it changes, and no text is shown twice in a row")
    func progress() async throws {
        let peer = try ScriptedPeer.pinChange { peer in
            for percent in ["null", "0", "40", "40", "80"] {
                peer.send(#"{"msg":"STATUS","progress":\#(percent),"state":null,"workflow":"CHANGE_PIN"}"#)
            }
            for _ in 0..<2 { peer.needCard() }
            peer.send(Say.changed)
        }
        let program = try badgectl(peer, "change-pin", "--pin-stdin")
        #expect(await program.exitCode == 0)
        #expect(
            program.text(.error) == "40 %: proving the card\n80 %: sending you back\nPut the ID card on the reader.\n"
        )
        #expect(program.text(.output) == "The PIN has been changed.\n")
    }

    @Test(
        "Every reason of a failed PIN change has a text of its own",
        arguments: [
            "User_Cancelled", "Card_Removed", "Connect_Card_Connection_Failed",
            "Establish_Pace_Channel_Basic_Reader_No_Pin",
            "Establish_Pace_Channel_Puk_Inoperative", "Establish_Pace_Channel_Unknown_Password_Id",
            "Establish_Pace_Channel_User_Cancelled", "Maintain_Card_Connection_Pace_Unrecoverable",
            "Change_Pin_No_SetEidPinCommand_Response", "Change_Pin_Input_Timeout", "Change_Pin_User_Cancelled",
            "Change_Pin_New_Pin_Mismatch", "Change_Pin_New_Pin_Invalid_Length", "Change_Pin_Unexpected_Transmit_Status",
            "Change_Pin_Card_User_Cancelled", "Change_Pin_Unrecoverable",
        ]
    )
    func reasons(reason: String) {
        let failure = ChangePINCommand.failure(reason: reason)
        #expect(failure.status == .failed)
        #expect(!failure.text.contains("_"))
        #expect(failure.hint?.isEmpty == false)
    }

    @Test(
        "When it is unknown which PIN the card has, the failure says so and how to find out",
        arguments: ["Change_Pin_No_SetEidPinCommand_Response", "Change_Pin_Unrecoverable"]
    )
    func uncertainPIN(reason: String) {
        let failure = ChangePINCommand.failure(reason: reason)
        #expect(failure.text.hasSuffix("; it may have the old PIN or the new one"))
        #expect(failure.hint == "run badgectl change-pin, and try each PIN once as the PIN, the new one first")
    }

    @Test("When the card has refused the new PIN, the failure says that the old one is valid")
    func refusedPIN() {
        let failure = ChangePINCommand.failure(reason: "Change_Pin_Unexpected_Transmit_Status")
        #expect(failure.text == "the card did not accept the new PIN")
        #expect(failure.hint == "the old PIN is still valid; try again, perhaps with another new PIN")
    }

    @Test("An unknown reason is shown by name")
    func unknownReason() {
        #expect(ChangePINCommand.failure(reason: "Later_Invention").text == "the PIN was not changed (Later_Invention)")
    }

    @Test(
        "An answer to the list of rights agrees, refuses or changes it",
        arguments: [
            ("y", .agreed), (" YES ", .agreed), ("n", .refused), ("", .refused), ("2", .changed(["A", "B", "C"])),
            ("1,2", .changed(["A", "C"])), ("3 1", .changed([])), ("4", .unclear), ("0", .unclear),
            ("-1", .unclear), ("1 x", .unclear), ("maybe", .unclear),
        ] as [(String, ConsentText.Decision)]
    )
    func decision(text: String, meaning: ConsentText.Decision) {
        let rights = AccessRights(required: [], optional: ["B", "C", "A"], effective: ["B", "A"])
        #expect(ConsentText.decision(text, about: rights) == meaning)
    }
}
