// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text

@Suite("badgectl: wallet", .timeLimit(.minutes(5))) struct WalletCommandTests {
    private typealias Played = PlayedWallet

    @Test("setup shows the PUK and the words once on the terminal, asks for three words, and clears the screen")
    func setup() async throws {
        let peer = try ScriptedPeer { $0.playSetup() }
        let program = try badgectl(peer, "wallet", "setup", hasTerminal: true)
        await answer(program, "New PIN: ", "123456")
        await answer(program, "Repeat the new PIN: ", "123456")
        #expect(await program.prints("1234 5678 9012"))
        await answer(program, "Press Return when you have written it down: ", "")
        #expect(await program.prints("\u{1b}[2J"))
        #expect(await program.prints("   1  abandon    5  above      9  absurd\r\n"), "\(program.dialogue)")
        #expect(await program.prints("   4  about      8  abstract  12  accident\r\n"))
        await answer(program, "Press Return when you have written it down: ", "")
        #expect(await program.prints("\u{1b}[H\u{1b}[2J\u{1b}[3J"))
        await answer(program, "Words 3, 7 and 11: ", " Able   absorb  ACCESS ")
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(
            program.text(.output) == """
                address     \(Played.address)
                API signer  0x1
                key UID     \(Played.keyUID)

                """
        )
        #expect(program.text(.error) == "")
        #expect(
            await peer.commandsWithValues() == [
                "RUN_WALLET", "SET_NEW_PIN 123456", "ACCEPT", "ACCEPT", "SET_WORDS able absorb access",
                "DEVICE_REGISTERED",
            ]
        )
        #expect(!program.text(.terminal).contains("123456\r"))
    }

    @Test("With --json the words and the PUK are on the terminal alone")
    func json() async throws {
        let peer = try ScriptedPeer { $0.playSetup() }
        let program = try badgectl(peer, "wallet", "setup", "--json", hasTerminal: true)
        await answer(program, "New PIN: ", "123456")
        await answer(program, "Repeat the new PIN: ", "123456")
        await answer(program, "down: ", "")
        await answer(program, "down: ", "")
        await answer(program, "Words 3, 7 and 11: ", "able absorb access")
        #expect(await program.exitCode == 0)
        let output = program.text(.output)
        #expect(!output.contains("abandon") && !output.contains("123456789012") && !output.contains("SHOW_"))
        let names = output.split(separator: "\n").compactMap { (try? JSON($0.utf8))?["msg"]?.string }
        #expect(names.first == "FLOW_STARTED" && names.last == "FLOW_COMPLETE")
    }

    @Test("Without a terminal setup shows no words: it cancels, and the card gets no keys")
    func noTerminal() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.prompt(Played.enter("NEW_PIN", 1), "SET_NEW_PIN")
            peer.prompt(Played.paperWallet(2), "CANCEL")
            peer.send(Played.interrupted("SETUP_DEVICE", "USER_CANCELED"))
        }
        let program = try badgectl(peer, "wallet", "setup", "--pin-stdin", input: "123456\n")
        #expect(await program.exitCode == 1)
        #expect(
            program.text(.error).hasSuffix(
                """
                badgectl: error: there is no terminal to show the words on
                hint: run badgectl in a terminal

                """
            )
        )
        #expect(!program.everything.contains("abandon"))
    }

    @Test("words restores a card from words that the terminal does not show, and says why words were refused")
    func restore() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("AUTHORIZE_DEVICE_WITH_MNEMONICS"))
            peer.prompt(Played.enterWords(1, #""count":12"#), "SET_WORDS")
            peer.prompt(Played.enterWords(1, #""count":12"#, error: "Word 3 is not in the list"), "SET_WORDS")
            peer.send(Played.complete("AUTHORIZE_DEVICE_WITH_MNEMONICS"))
        }
        let program = try badgectl(
            peer,
            "wallet",
            "words",
            "--key-uid",
            Played.keyUID.uppercased(),
            "--duress-pin",
            "--passphrase",
            hasTerminal: true
        )
        let words = Played.words.joined(separator: " ")
        await answer(program, "12 words: ", "abandon ability")
        #expect(await program.prints("Type 12 words with spaces between them."))
        await answer(program, "12 words: ", words)
        #expect(await program.prints("Word 3 is not in the list."))
        await answer(program, "12 words: ", words)
        await program.ends(0, showing: "key UID     \(Played.keyUID)\n")
        #expect(!program.everything.contains("abandon"))
        let start = try JSON(Array(try #require(await peer.received().first).utf8))
        #expect(start["keyUID"] == .string(Played.keyUID) && start["generatePUK"] == .bool(true))
        #expect(start["duressPin"] == .bool(true) && start["passphrase"] == .bool(true))
    }

    @Test(
        "a pairing password that the card does not know is not called unsent, and one of another form is",
        arguments: [true, false]
    )
    func pairingPassword(isWrong: Bool) async throws {
        let again = Played.enter("PAIRING_PASSWORD", 2, error: "The card does not know it").dropLast()
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("PAIR"))
            peer.prompt(Played.enter("PAIRING_PASSWORD", 1), "SET_PAIRING_PASSWORD")
            peer.prompt(again + (isWrong ? #","wrong":true}"# : "}"), "SET_PAIRING_PASSWORD")
            peer.send(Played.complete("PAIR", Played.card))
        }
        let program = try badgectl(peer, "wallet", "pair", hasTerminal: true)
        for _ in 1...2 { await answer(program, "password: ", "one") }
        #expect(await program.exitCode == 0, "\(program.everything)")
        let lines = program.dialogue.split(separator: "\n")
        #expect(lines.contains("The card does not know it.") == isWrong, "\(program.dialogue)")
        #expect(lines.contains("Not sent to the card: The card does not know it.") != isWrong)
    }

    @Test("pin shows the tries that are left, and goes on with the PUK when the PIN is blocked")
    func tries() async throws {
        let peer = try ScriptedPeer { $0.playResetPIN(lastTries: 1) }
        let program = try badgectl(peer, "wallet", "pin", hasTerminal: true)
        for pin in ["111111", "222222"] { await answer(program, "PIN: ", pin) }
        for puk in ["000000000000", "123456789012"] {
            await answer(program, "PUK: ", puk)
            for question in ["New PIN: ", "Repeat the new PIN: "] { await answer(program, question, "333333") }
        }
        await program.ends(0, printing: "The PIN has been changed.\n")
        let said = program.dialogue.split(separator: "\n").filter { line in
            !["Leave the card", "PIN: ", "PUK: ", "New PIN: ", "Repeat "].contains { line.hasPrefix($0) }
        }
        #expect(
            said == [
                "2 tries are left.", "That PIN was wrong.",
                "This is the last try. Another wrong PIN blocks the PIN, and then you need the PUK.",
                "That PIN was wrong.",
                "The PIN is blocked. The PUK unblocks it: the 12 digits that you wrote down. 5 tries are left.",
                "That PUK was wrong.",
                "The PIN is blocked. The PUK unblocks it: the 12 digits that you wrote down. This is the last try: after "
                    + "another wrong PUK only reset-card and the words help.",
            ]
        )
    }

    @Test("unblock asks badged for the PUK at once")
    func unblock() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("RUN_WALLET", Played.interrupted("RESET_PIN", "PIN_NOT_BLOCKED", "The PIN has 3 tries left."))
        }
        let program = try badgectl(peer, "wallet", "unblock")
        #expect(await program.exitCode == 1)
        #expect(
            program.text(.error) == """
                badgectl: error: The PIN has 3 tries left
                hint: the PIN still has tries: badgectl wallet pin

                """
        )
        let start = try JSON(Array(try #require(await peer.received().first).utf8))
        #expect(start["workflow"] == .string("RESET_PIN") && start["puk"] == .bool(true))
    }

    @Test("sign shows the text, and writes signature and public key alone to standard output")
    func sign() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_SIGN")
            peer.send(Played.operationStarted("sign"))
            peer.prompt(Played.signRequest(1), "ACCEPT")
            peer.prompt(Played.enter("PIN", 2, left: 3), "SET_PIN")
            peer.send(Played.result("sign", 1, #","sign":"\#(Played.signature)""#))
        }
        let program = try badgectl(peer, "wallet", "sign", "hello", hasTerminal: true)
        #expect(await program.prints("The card is asked to sign:\r\n"))
        #expect(await program.prints("text    hello\r\n"))
        #expect(await program.prints("Sign? [y/N] ", typing: "y\n"))
        await answer(program, "PIN: ", "123456")
        await program.ends(0, printing: "\(Played.signature)\n\(Played.publicKey)\n")
        #expect(program.text(.error) == "")
    }

    @Test("transfer shows the decoded actions without control characters, and writes the transaction id")
    func transfer() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_TRANSFER")
            peer.send(Played.operationStarted("transfer"))
            peer.prompt(Played.request(1), "ACCEPT")
            peer.prompt(Played.enter("PIN", 2, left: 3), "SET_PIN")
            peer.send(Played.result("transfer", 1, #","txId":"ab12""#))
        }
        let program = try RunningProgram(
            "badgectl",
            [
                "--socket", peer.path, "wallet", "transfer", "alice", "bob", "1.31 EOS", "hi", "--decimals", "4",
                "--yes",
                "--pin-stdin",
            ],
            input: "123456\n"
        )
        await program.ends(0, printing: "ab12\n")
        let said = program.text(.error)
        for line in ["action      transfer of eosio.token", "quantity  1.3100 EOS", "memo      \\u{1b}[2Jhi"] {
            #expect(said.contains(line), "\(said)")
        }
        let sent = try JSON(Array(try #require(await peer.received().first { $0.contains("WALLET_TRANSFER") }).utf8))
        for (name, value) in ["from": "alice", "to": "bob", "amount": "1.31", "symbol": "EOS", "memo": "hi"] {
            #expect(sent[name] == .string(value))
        }
        #expect(sent["decimal"]?.int == 4)
    }

    @Test("A request to which the user does not agree is cancelled, and no PIN is asked for")
    func refused() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_SIGN")
            peer.prompt(Played.signRequest(1), "CANCEL")
            peer.send(Played.result("sign", 0))
        }
        let program = try badgectl(peer, "wallet", "sign", "hello", hasTerminal: true)
        #expect(await program.prints("Sign? [y/N] ", typing: "\n"))
        await program.ends(1, printing: "")
        #expect(program.text(.error).hasPrefix("badgectl: error: not agreed: nothing was signed\n"))
        #expect(await peer.commandsWithValues() == ["WALLET_INIT", "WALLET_SIGN", "CANCEL"])
    }

    @Test("contract sends the actions of a file, and says when the outcome is not known")
    func contract() async throws {
        let folder = try TemporaryFolder()
        let file = #"{"account":"alice","actions":[{"account":"eosio","name":"buyram","data":{"payer":"alice"}}]}"#
        try folder.write("actions.json", Array(file.utf8))
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.answer("WALLET_CONTRACT", Played.result("contract", 10005, #","txId":"ab12""#))
        }
        let program = try badgectl(peer, "wallet", "contract", folder.path + "/actions.json", "--yes")
        await program.ends(1, printing: "")
        #expect(
            program.text(.error).contains("hint: it is not known whether it was carried out: look at the chain for")
        )
        #expect(program.text(.error).contains("ab12"))
        let sent = try JSON(Array(try #require(await peer.received().last).utf8))
        #expect(sent["account"] == .string("alice"))
        #expect(sent["actions"]?.array?.first?["data"]?["payer"] == .string("alice"))
    }

    @Test(
        "A failed operation has the hint for its code, for what has changed, and for a setting",
        arguments: [
            (0, "", "run badgectl wallet again"),
            (0, #","change":"The PIN has changed""#, "look at the state of the card: badgectl wallet status"),
            (2, #","setting":"[wallet] node""#, "after the line is in badged.conf: systemctl restart badged"),
            (10004, "", "set the card up: badgectl wallet setup"),
        ]
    )
    func hint(code: Int, members: String, hint: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_SIGN")
            peer.send(Played.result("sign", code, members))
        }
        let program = try badgectl(peer, "wallet", "sign", "hello", "--yes")
        await program.ends(1, printing: "")
        #expect(program.text(.error).contains("hint: \(hint)"), "\(program.everything)")
    }

    @Test(
        "A file without actions is refused before anything is sent",
        arguments: [
            "{}", "[]", "nonsense", #"[{"account":"a"}]"#, #"{"actions":[{"account":"a","name":"b","data":1}]}"#,
        ]
    )
    func badFile(text: String) async throws {
        let folder = try TemporaryFolder()
        try folder.write("actions.json", Array(text.utf8))
        let program = try RunningProgram(
            "badgectl",
            ["--socket", "/nowhere/x", "wallet", "contract", folder.path + "/actions.json"]
        )
        await program.ends(1, saying: "actions.json")
        let missing = try RunningProgram("badgectl", ["wallet", "contract", folder.path + "/none"])
        await missing.ends(1, sayingFirst: "badgectl: error: cannot read ")
    }

    @Test("reset-card destroys nothing before the key UID was typed", arguments: [true, false])
    func reset(isRight: Bool) async throws {
        let peer = try ScriptedPeer { peer in
            guard isRight else { return }
            peer.command("RUN_WALLET")
            peer.send(Played.complete("RESET_CARD", Played.card))
        }
        let program = try badgectl(peer, "wallet", "reset-card", "--key-uid", Played.keyUID, hasTerminal: true)
        #expect(await program.prints("Type the key UID of the card to go on: "))
        program.type((isRight ? Played.keyUID.uppercased() : String(repeating: "0", count: 64)) + "\n")
        #expect(await program.exitCode == (isRight ? 0 : 1))
        if isRight {
            #expect(program.text(.output) == "The card is in its factory state: PIN, PUK and keys are destroyed.\n")
            let start = try JSON(Array(try #require(await peer.received().first).utf8))
            #expect(start["keyUID"] == .string(Played.keyUID))
        } else {
            #expect(
                program.text(.error).hasPrefix("badgectl: error: that is another key UID: the card was not reset\n")
            )
            #expect(await peer.commandsWithValues() == [])
        }
    }

    @Test("unpair --others frees the slots of all other computers, and says how many are free")
    func unpairOthers() async throws {
        let card = #""contextEntity":{"entity":{"usedSlots":1,"freeSlots":4},"entityType":"card"}"#
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("UNPAIR"))
            peer.prompt(Played.enter("PIN", 1, left: 3), "SET_PIN")
            peer.send(Played.validated)
            peer.send(Played.complete("UNPAIR", card))
        }
        let program = try badgectl(peer, "wallet", "unpair", "--others", "--pin-stdin", input: "123456\n")
        await program.ends(0, printing: "The card is paired with this computer only; 4 slots are free.\n")
        let start = try JSON(Array(try #require(await peer.received().first).utf8))
        #expect(start["workflow"] == .string("UNPAIR") && start["others"] == .bool(true))
    }

    @Test(
        "words may have commas and their numbers",
        arguments: ["able,absorb , access", "3. able 7) absorb 11: access", "3 able, 7 absorb, 11 access"]
    )
    func typedWords(text: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("SETUP_DEVICE"))
            peer.prompt(Played.enterWords(1, #""positions":[3,7,11]"#), "SET_WORDS")
            peer.send(Played.complete("SETUP_DEVICE"))
        }
        let program = try badgectl(peer, "wallet", "setup", hasTerminal: true)
        await answer(program, "Words 3, 7 and 11: ", text)
        #expect(await program.exitCode == 0, "\(program.everything)")
    }

    @Test("Without a terminal reset-card needs --yes")
    func resetScript() async throws {
        let peer = try ScriptedPeer { _ in }
        let program = try badgectl(peer, "wallet", "reset-card", "--key-uid", Played.keyUID)
        await program.ends(1, saying: "a script that has checked the key UID itself uses --yes")
        #expect(await peer.commandsWithValues() == [])
    }

    @Test("status shows each wallet card with what to do next; --json writes the messages")
    func status() async throws {
        let list = Say.list(
            Say.keycard(
                #""version":"3.1","initialised":true,"keyUID":"\#(Played.keyUID)","pinTries":0,"pukTries":1,"paired":true,"#
                    + #""trusted":null,"usedSlots":5,"freeSlots":0"#
            )
        )
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_READER_LIST", list)
            peer.hangUp()
        } others: { peer in
            peer.answer("GET_READER_LIST", list)
        }
        let program = try badgectl(peer, "wallet", "status")
        #expect(await program.exitCode == 0)
        #expect(
            program.text(.output) == """
                R
                  card     Keycard 3.1
                  state    PIN blocked: badgectl wallet unblock
                  key UID  \(Played.keyUID)
                  PIN      0 tries left
                  PUK      1 try left
                  pairing  paired with this computer
                  slots    5 used, 0 free: badgectl wallet unpair --others on a paired computer
                           frees them

                """
        )
        let json = try badgectl(peer, "wallet", "status", "--json")
        #expect(await json.exitCode == 0)
        #expect(json.text(.output).contains(#""msg":"READER_LIST""#))
        let none = try ScriptedPeer { $0.answer("GET_READER_LIST", Say.list(Say.reader())) }
        let empty = try badgectl(none, "wallet", "status")
        await empty.ends(1, sayingFirst: "badgectl: error: no reader has a wallet card\n")
    }

    @Test(
        "Wrong usage ends with 2 before badged is asked",
        arguments: [
            (["wallet"], "wallet needs status, setup"),
            (["wallet", "stats"], "stats is not one of status, setup"),
            (["wallet", "sign"], "wallet sign needs TEXT"),
            (["wallet", "sign", "a", "b"], "unexpected argument b"),
            (["wallet", "status", "--words", "12"], "wallet status has no option --words"),
            (["wallet", "setup", "--words", "13"], "--words 13: not one of 12, 15, 18, 21, 24"),
            (["wallet", "transfer", "a", "b", "1.0"], "1.0 is not an amount with its symbol"),
            (["wallet", "transfer", "a", "b", "1 EOS", "--decimals", "x"], "--decimals needs a number from 0 to 18"),
            (["wallet", "reset-card"], "wallet reset-card needs --key-uid UID"),
            (["wallet", "reset-card", "--key-uid", "12"], "12 is not a key UID"),
            (["wallet", "reset-card", "--key-uid", "", "--pinentry"], "wallet reset-card asks for the key UID in the"),
        ] as [([String], String)]
    )
    func usage(arguments: [String], text: String) async throws {
        let program = try RunningProgram("badgectl", ["--socket", "/nowhere/x"] + arguments)
        await program.ends(2, sayingFirst: "badgectl: error: \(text)")
    }

    @Test("A user without the permission is denied with 4")
    func denied() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("RUN_WALLET", #"{"msg":"ACCESS_DENIED","error":"RUN_WALLET"}"#)
        }
        let program = try badgectl(peer, "wallet", "unpair")
        await program.ends(4, sayingFirst: "badgectl: error: badged does not allow this to this user\n")
    }

    private static let mayBeSent = "the transaction may have been sent; look at the chain before you repeat it"
    private static let mayBeChanged = "the card may have been changed; badgectl wallet status shows its state"

    private static let working = #"{"msg":"STATUS","progress":20,"state":null,"workflow":"WALLET"}"#

    /// Plays a transfer up to its PIN, and then the script.
    private func playTransfer(
        then script: @escaping @Sendable (ScriptedPeer.Connection) -> Void
    ) throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_TRANSFER")
            peer.send(Played.operationStarted("transfer"))
            peer.prompt(Played.request(1), "ACCEPT")
            peer.prompt(Played.enter("PIN", 2, left: 3), "SET_PIN")
            peer.send(Self.working)
            script(peer)
        }
    }

    private static let transferring = ["wallet", "transfer", "alice", "bob", "1.31 EOS", "--yes", "--pin-stdin"]

    /// Plays a change of the PIN up to the old PIN, and then the script.
    private func playChange(then script: @escaping @Sendable (ScriptedPeer.Connection) -> Void) throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("RESET_PIN"))
            peer.prompt(Played.enter("PIN", 1, left: 3), "SET_PIN")
            peer.send(Self.working)
            script(peer)
        }
    }

    private static let changing = ["wallet", "pin", "--pin-stdin"]

    private func start(_ arguments: [String], _ peer: ScriptedPeer) throws -> RunningProgram {
        try RunningProgram("badgectl", ["--socket", peer.path] + arguments, input: "123456\n")
    }

    @Test("Ctrl-C says what badged reports")
    func interruptedOnce() async throws {
        let reports = [
            (
                Self.transferring, "nothing was sent",
                try playTransfer { peer in
                    peer.command("CANCEL")
                    peer.send(Played.result("transfer", 0))
                }
            ),
            (
                Self.changing, "the PIN was not changed",
                try playChange { peer in
                    peer.command("CANCEL")
                    peer.send(Played.interrupted("RESET_PIN", "USER_CANCELED"))
                }
            ),
        ]
        for (arguments, words, peer) in reports {
            let program = try start(arguments, peer)
            #expect(await program.prints("20 %", on: .error))
            #expect(await program.exitCode(after: SIGINT) == 130)
            #expect(program.text(.error).hasSuffix("badgectl: error: interrupted: \(words)\n"), "\(program.everything)")
        }
    }

    @Test("A second Ctrl-C, for which badged reports nothing, says what may have happened")
    func interruptedTwice() async throws {
        let silent = [
            (Self.transferring, Self.mayBeSent, try playTransfer { $0.command("CANCEL") }),
            (Self.changing, Self.mayBeChanged, try playChange { $0.command("CANCEL") }),
        ]
        for (arguments, words, peer) in silent {
            let program = try start(arguments, peer)
            #expect(await program.prints("20 %", on: .error))
            program.signal(SIGINT)
            #expect(await program.prints("Cancelling.", on: .error))
            #expect(await program.exitCode(after: SIGINT) == 130)
            #expect(program.text(.error).hasSuffix("badgectl: error: interrupted: \(words)\n"), "\(program.everything)")
        }
    }

    @Test("The end of the connection says what may have happened")
    func lost() async throws {
        let leaving = [
            (Self.transferring, Self.mayBeSent, try playTransfer { $0.hangUp() }),
            (Self.changing, Self.mayBeChanged, try playChange { $0.hangUp() }),
            (
                ["wallet", "reset-card", "--key-uid", Played.keyUID, "--yes"], Self.mayBeChanged,
                try ScriptedPeer { peer in
                    peer.command("RUN_WALLET")
                    peer.hangUp()
                }
            ),
            (
                Self.changing, "the PIN was not changed",
                try ScriptedPeer { peer in
                    peer.command("RUN_WALLET")
                    peer.hangUp()
                }
            ),
        ]
        for (arguments, words, peer) in leaving {
            let program = try start(arguments, peer)
            await program.ends(3, saying: ": \(words)\nhint: ")
        }
    }

    @Test("Ctrl-C while the words are shown cancels, and the card gets no keys")
    func interrupted() async throws {
        let peer = try ScriptedPeer { $0.playCancelled("SETUP_DEVICE", at: Played.paperWallet(1)) }
        let program = try badgectl(peer, "wallet", "setup", hasTerminal: true)
        #expect(await program.prints("Press Return when you have written it down: ", typing: "\u{3}"))
        #expect(await program.exitCode == 130)
        #expect(program.echoes)
        #expect(await peer.commandsWithValues() == ["RUN_WALLET", "CANCEL"])
    }
}
