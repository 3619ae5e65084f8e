// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text

/// A script writes each line of standard input for one question. A line that answers another one costs a try.
@Suite("badgectl: lines of a script", .timeLimit(.minutes(5))) struct ScriptLinesTests {
    private typealias Played = PlayedWallet

    /// A dialogue, up to the question that no line may answer.
    struct Dialogue: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var command = ["change-pin"]
        var input: String
        /// What badged gets of the lines.
        var sent: [String]
        var error: String
        let play: @Sendable (ScriptedPeer.Connection) -> Void

        init(
            _ name: String,
            _ command: [String] = ["change-pin"],
            input: [String],
            sent: [String],
            error: String,
            _ play: @escaping @Sendable (ScriptedPeer.Connection) -> Void
        ) {
            testDescription = name
            self.command = command
            self.input = input.map { $0 + "\n" }.joined()
            self.sent = sent
            self.error = error
            self.play = play
        }
    }

    private static let dialogues = [
        Dialogue(
            "a wrong PIN, then the PIN again",
            input: ["000000", "654321"],
            sent: ["SET_PIN 000000"],
            error: "the PIN was wrong: the PIN was not changed"
        ) { peer in
            peer.start()
            peer.ask("PIN")
            peer.send(Say.enter("PIN", Say.reader(left: 2)))
            peer.endCancelled()
        },
        Dialogue(
            "a wrong PIN, then the CAN",
            input: ["000000", "654321"],
            sent: ["SET_PIN 000000"],
            error: "the PIN was wrong: the PIN was not changed"
        ) { peer in
            peer.start()
            peer.ask("PIN", Say.reader(left: 2))
            peer.send(Say.enter("CAN", Say.reader(left: 1)))
            peer.endCancelled()
        },
        Dialogue(
            "a wrong CAN",
            input: ["500541", "123456", "654321"],
            sent: ["SET_CAN 500541"],
            error: "the CAN was wrong: the PIN was not changed"
        ) { peer in
            peer.start()
            peer.ask("CAN", Say.reader(left: 1))
            peer.send(Say.enter("CAN", Say.reader(left: 1)))
            peer.endCancelled()
        },
        Dialogue(
            "a wrong PUK",
            input: ["0000000000", "1234567890"],
            sent: ["SET_PUK 0000000000"],
            error: "the PUK was wrong: the PIN was not changed"
        ) { peer in
            peer.start()
            peer.ask("PUK", Say.reader(left: 0))
            peer.send(Say.enter("PUK", Say.reader(left: 0)))
            peer.endCancelled()
        },
        Dialogue(
            "a card that was away while it checked the PIN",
            input: ["123456", "654321"],
            sent: ["SET_PIN 123456"],
            error: "the card left before it answered: the PIN was not changed"
        ) { peer in
            peer.start()
            peer.ask("PIN")
            peer.send(Say.event(Say.reader(left: nil)))
            peer.needCard()
            peer.send(Say.enter("PIN", Say.reader()))
            peer.endCancelled()
        },
        Dialogue(
            "a card that was away while it changed the PIN",
            input: ["123456", "654321", "111111"],
            sent: ["SET_PIN 123456", "SET_NEW_PIN 654321"],
            error: "the card left before it answered, and may have the old PIN or the new one"
        ) { peer in
            peer.start()
            peer.ask("PIN")
            peer.ask("NEW_PIN")
            peer.send(Say.event(Say.reader(left: nil)))
            peer.needCard()
            peer.send(Say.enter("PIN", Say.reader()))
            peer.endCancelled()
        },
        Dialogue(
            "a PIN that badged has not taken",
            input: ["123456", "654321"],
            sent: ["SET_PIN 123456"],
            error: "badged has not sent the value to the card (No card inserted): the PIN was not changed"
        ) { peer in
            peer.start()
            peer.ask("PIN")
            peer.send("{\"error\":\"No card inserted\",\"msg\":\"ENTER_PIN\",\"reader\":{\(Say.reader())}}")
            peer.endCancelled()
        },
        Dialogue(
            "a CAN to which the card gave no answer",
            input: ["500540", "123456", "654321"],
            sent: ["SET_CAN 500540"],
            error: "the card gave no answer, so the value may have been right: the PIN was not changed"
        ) { peer in
            peer.start()
            peer.ask("CAN", Say.reader(left: 1))
            peer.send(Say.unanswered("CAN", left: 1))
            peer.endCancelled()
        },
        Dialogue(
            "a wrong PIN of a wallet card, then its PUK",
            ["wallet", "pin"],
            input: ["000000", "123456789012"],
            sent: ["SET_PIN 000000"],
            error: "the PIN was wrong: the PIN was not changed"
        ) { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("RESET_PIN"))
            peer.prompt(Played.enter("PIN", 1, left: 1), "SET_PIN")
            peer.send(Played.invalid("PIN", left: 0))
            peer.prompt(Played.enter("PUK", 2, left: 5), "CANCEL")
            peer.send(Played.interrupted("RESET_PIN", "USER_CANCELED"))
        },
        Dialogue(
            "a wrong pairing password of a wallet card",
            ["wallet", "pair"],
            input: ["one", "two"],
            sent: ["SET_PAIRING_PASSWORD one"],
            error: "the pairing password was wrong: the card was not paired"
        ) { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("PAIR"))
            peer.prompt(Played.enter("PAIRING_PASSWORD", 1), "SET_PAIRING_PASSWORD")
            let again = Played.enter("PAIRING_PASSWORD", 2, error: "The card does not know it")
            peer.prompt(again.dropLast() + #","wrong":true}"#, "CANCEL")
            peer.send(Played.interrupted("PAIR", "USER_CANCELED"))
        },
        Dialogue(
            "wrong words of a wallet",
            ["wallet", "words"],
            input: [Array(repeating: "zoo", count: 12), Array(repeating: "able", count: 12)].map {
                $0.joined(separator: " ")
            },
            sent: ["SET_WORDS " + Array(repeating: "zoo", count: 12).joined(separator: " ")],
            error: "The checksum of the words is wrong: the card was not restored"
        ) { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("AUTHORIZE_DEVICE_WITH_MNEMONICS"))
            peer.prompt(Played.enterWords(1, #""count":12"#), "SET_WORDS")
            let wrong = "The checksum of the words is wrong"
            peer.prompt(Played.enterWords(2, #""count":12"#, error: wrong), "CANCEL")
            peer.send(Played.interrupted("AUTHORIZE_DEVICE_WITH_MNEMONICS", "USER_CANCELED"))
        },
    ]

    @Test("A line answers one question: after a value that was not accepted the run ends", arguments: dialogues)
    func ends(dialogue: Dialogue) async throws {
        let peer = try ScriptedPeer(dialogue.play)
        let arguments = ["--socket", peer.path] + dialogue.command + ["--pin-stdin"]
        let program = try RunningProgram("badgectl", arguments, input: dialogue.input)
        await program.ends(1, saying: "badgectl: error: \(dialogue.error)")
        #expect(program.text(.error).contains("hint: a line of standard input answers one question"))
        #expect(values(await peer.received()) == dialogue.sent)
        #expect(await peer.commands().last == "CANCEL")
    }

    @Test("Without a person a PIN is given once, also when the card comes back")
    func automatic() async throws {
        let folder = try TemporaryFolder()
        try folder.write("pin", Array("123456\n".utf8))
        chmod(folder.path + "/pin", 0o600)
        let peer = try ScriptedPeer.acceptedAuthentication { peer in
            peer.ask("PIN")
            peer.send(Say.event(Say.reader(left: nil)))
            peer.needCard()
            peer.send(Say.enter("PIN", Say.reader()))
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
        }
        let pin = ["--automatic", "--rights", "all", "--pin-file", folder.path + "/pin"]
        let arguments = ["--socket", peer.path, "auth", "https://a.example/token"] + pin
        let program = try RunningProgram("badgectl", arguments, input: "")
        await program.ends(1, saying: "badgectl: error: the card left before it answered")
        #expect(values(await peer.received()) == ["SET_PIN 123456"])
    }
}
