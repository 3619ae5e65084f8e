// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Testing

@testable import badgectl

private func reader(_ left: Int?, keypad: Bool = false) -> Reader {
    Reader(
        name: "R",
        hasKeypad: keypad,
        card: left.map { .eid(retryCounter: $0, deactivated: false, inoperative: false) }
    )
}

@Suite("badgectl: the dialogue of change-pin") struct WorkflowDialogueTests {
    @Test("a question comes again after the card was away: not called wrong, and answered anew only by the person")
    func cardAway() {
        for (kind, left) in [(SecretKind.pin, 3), (.can, 1), (.puk, 0), (.newPIN, 3)] {
            var dialogue = WorkflowDialogue(wanted: nil)
            _ = dialogue.handle(.message(.enter(kind, error: nil, reader: reader(left))))
            #expect(dialogue.handle(.answered).last == .submit(kind))
            #expect(dialogue.handle(.message(.reader(reader(nil)))) == [.say(ChangePINWords.cardLeft)])
            _ = dialogue.handle(.message(.insertCard(error: nil, reader: nil)))
            _ = dialogue.handle(.message(.reader(reader(left))))
            let effects = dialogue.handle(.message(.enter(kind, error: nil, reader: reader(left))))
            #expect(effects == [.say(ChangePINWords.again(kind)), .ask(kind)])
        }
    }

    @Test("a try that the card counted was wrong, even when it was taken away at once")
    func wrongAndAway() {
        var dialogue = WorkflowDialogue(wanted: nil)
        _ = dialogue.handle(.message(.enter(.pin, error: nil, reader: reader(3))))
        _ = dialogue.handle(.answered)
        _ = dialogue.handle(.message(.reader(reader(nil))))
        let effects = dialogue.handle(.message(.enter(.pin, error: nil, reader: reader(2))))
        #expect(effects == [.say(ChangePINWords.wrong(.pin)), .say("2 tries are left."), .ask(.pin)])
    }

    @Test(
        "a card with a history is explained at the first question",
        arguments: [
            (SecretKind.pin, 2, "2 tries are left."),
            (.can, 1, ChangePINWords.tries(.can, left: 1) ?? ""),
            (.puk, 0, ChangePINWords.tries(.puk, left: 0) ?? ""),
        ]
    )
    func firstQuestion(kind: SecretKind, left: Int, words: String) {
        var dialogue = WorkflowDialogue(wanted: nil)
        let effects = dialogue.handle(.message(.enter(kind, error: nil, reader: reader(left))))
        #expect(effects == [.say(words), .ask(kind)])
    }

    @Test("an error at a keypad waits for Return, so that nothing goes round by itself")
    func keypadError() {
        var dialogue = WorkflowDialogue(wanted: nil)
        let first = dialogue.handle(.message(.enter(.pin, error: nil, reader: reader(3, keypad: true))))
        #expect(first.last == .submitOnKeypad(.pin))
        let error = dialogue.handle(.message(.enter(.pin, error: "No card inserted", reader: reader(3, keypad: true))))
        #expect(error == [.say("Not given to the card: No card inserted."), .askToGoOn])
        #expect(dialogue.handle(.answered) == [.submitOnKeypad(.pin)])
    }

    @Test("a virtual card that falls out again and again is put back ten times")
    func fallingCard() {
        var dialogue = WorkflowDialogue(wanted: nil)
        let shelf = Reader(name: "S", isInsertable: true)
        _ = dialogue.handle(.message(.readerList([shelf])))
        var insertions = 0
        for _ in 0..<100 {
            let effects = dialogue.handle(.message(.insertCard(error: nil, reader: nil)))
            insertions += effects.count { $0 == .insertCard(reader: "S") }
        }
        #expect(insertions == 10)
    }

    @Test("after cancelling nothing is asked and nothing is sent, whatever comes")
    func afterCancel() {
        var dialogue = WorkflowDialogue(wanted: nil)
        _ = dialogue.handle(.message(.readerList([Reader(name: "S", isInsertable: true)])))
        #expect(dialogue.handle(.signal(2)).contains(.cancel))
        for message: ServerMessage in [
            .enter(.pin, error: nil, reader: reader(3)), .enter(.puk, error: "E", reader: reader(0, keypad: true)),
            .insertCard(error: nil, reader: nil), .pause(cause: "BadCardPosition"), .reader(reader(nil)),
        ] {
            #expect(dialogue.handle(.message(message)) == [])
        }
        #expect(dialogue.handle(.answered) == [])
        let end = dialogue.handle(.message(.changePINEnded(success: false, reason: "User_Cancelled")))
        #expect(end == [.end(Failure(.interrupted(2), "interrupted: the PIN was not changed"))])
    }

    @Test("a value that crossed with a message is not the end", arguments: ["SET_PIN", "SET_CARD", "CONTINUE"])
    func crossed(command: String) {
        var dialogue = WorkflowDialogue(wanted: nil)
        #expect(dialogue.handle(.message(.badState(command: command))) == [])
    }

    @Test(
        "what to do about a missing card depends on the readers",
        arguments: [
            (nil, [], "No reader is connected: connect one, then put the ID card on it."),
            (nil, ["A"], "Put the ID card on the reader."),
            ("A", ["A", "B"], "Put the ID card on the reader A."),
            ("C", ["A", "B"], "There is no reader C now; connect it. Readers that are there: A, B."),
            ("C", [], "There is no reader C now; connect it."),
        ] as [(String?, [String], String)]
    )
    func insertCard(wanted: String?, names: [String], words: String) {
        var dialogue = WorkflowDialogue(wanted: wanted)
        _ = dialogue.handle(.message(.readerList(names.map { Reader(name: $0) })))
        #expect(dialogue.handle(.message(.insertCard(error: nil, reader: nil))) == [.say(words)])
        // Once is enough.
        #expect(dialogue.handle(.message(.insertCard(error: nil, reader: nil))) == [])
    }

    @Test("progress is told when it changes")
    func progress() {
        var dialogue = WorkflowDialogue(wanted: nil)
        func status(_ percent: Int?) -> [WorkflowDialogue.Effect] {
            dialogue.handle(.message(.status(WorkflowStatus(workflow: "CHANGE_PIN", progress: percent))))
        }
        #expect(status(nil) == [])
        #expect(status(0) == [])
        #expect(status(40) == [.say("40 %")])
        #expect(status(40) == [])
        #expect(status(80) == [.say("80 %")])
    }

    @Test(
        "every reason of a failed PIN change has words of its own",
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
        let failure = ChangePINWords.failure(reason: reason)
        #expect(failure.status == .failed)
        #expect(!failure.text.contains("_"))
        #expect(failure.hint?.isEmpty == false)
    }

    @Test("a reason that is not known is named")
    func unknownReason() {
        #expect(ChangePINWords.failure(reason: "Later_Invention").text == "the PIN was not changed (Later_Invention)")
    }
}
