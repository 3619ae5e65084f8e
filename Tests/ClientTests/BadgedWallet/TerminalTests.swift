// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import TestSupport
import Testing
import Text

@Suite("An app of MYKEY that asks on its terminal", .timeLimit(.minutes(5))) struct TerminalTests {
    private typealias Played = PlayedWallet

    @Test("The request is shown without control characters, and the PIN is typed without echo, once for each question")
    func agrees() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_TRANSFER")
            peer.prompt(Played.request(1), "ACCEPT")
            peer.prompt(Played.enter("PIN", 2, left: 2), "SET_PIN")
            peer.send(Played.invalid("PIN", left: 1))
            peer.prompt(Played.enter("PIN", 3, left: 1), "SET_PIN")
            peer.send(Played.validated)
            peer.send(Played.result("transfer", 1, #","txId":"ab""#))
        }
        let program = try RunningProgram("badged-test-program", ["mykey-app", peer.path], hasTerminal: true)
        #expect(await program.prints("Sign this with the card?\r\n"))
        #expect(await program.prints("  quantity  1.3100 EOS\r\n"), "\(program.everything)")
        #expect(await program.prints("  memo      \\u{1b}[2Jhi\r\n"), "\(program.everything)")
        #expect(await program.prints("Agree? [y/N] ", typing: "y\n"))
        #expect(await program.prints("2 tries are left.\r\nPIN: "))
        #expect(!program.echoes)
        program.type("111111\n")
        #expect(await program.prints("That PIN was wrong.\r\n1 try is left.\r\nPIN: "))
        #expect(!program.echoes)
        program.type("123456\n")
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(program.text(.output).hasPrefix("success {"))
        #expect(!program.everything.contains("123456"))
        let sent = await peer.commandsWithValues()
        #expect(sent == ["WALLET_INIT", "WALLET_TRANSFER", "ACCEPT", "SET_PIN 111111", "SET_PIN 123456"])
    }

    @Test("Another answer than y, and a process without a terminal, agree to nothing", arguments: [true, false])
    func refuses(hasTerminal: Bool) async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_TRANSFER")
            peer.prompt(Played.request(1), "CANCEL")
            peer.send(Played.result("transfer", 0))
        }
        let program = try RunningProgram("badged-test-program", ["mykey-app", peer.path], hasTerminal: hasTerminal)
        if hasTerminal {
            #expect(await program.prints("Agree? [y/N] ", typing: "\n"))
        }
        #expect(await program.exitCode == 2, "\(program.everything)")
        #expect(program.text(.output) == "cancelled\n")
    }

    @Test("Text of an app makes no lines of its own, and what was typed before the question is no answer")
    func lines() async throws {
        let isTyped = DispatchSemaphore(value: 0)
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_TRANSFER")
            isTyped.wait()
            peer.prompt(Played.request(1, memo: #"hi\n  quantity  0.0001 EOS\nAgree? [y/N] "#), "CANCEL")
            peer.send(Played.result("transfer", 0))
        }
        let program = try RunningProgram("badged-test-program", ["mykey-app", peer.path], hasTerminal: true)
        program.type("y\n")
        isTyped.signal()
        #expect(await program.prints(#"  memo      hi\u{a}  quantity  0.0001 EOS\u{a}Agree? [y/N] "# + "\r\n"))
        #expect(await program.prints("Agree? [y/N] ", typing: "n\n"))
        #expect(await program.exitCode == 2, "\(program.everything)")
    }

    @Test("A question whose card has left is withdrawn, and the next one is asked")
    func withdrawn() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_TRANSFER")
            peer.prompt(Played.request(1), "ACCEPT")
            peer.send(Played.enter("PIN", 2, left: 3))
            peer.send(#"{"msg":"INSERT_CARD"}"#)
            peer.prompt(Played.enter("PIN", 3, left: 3), "SET_PIN")
            peer.send(Played.result("transfer", 1))
        }
        let program = try RunningProgram("badged-test-program", ["mykey-app", peer.path], hasTerminal: true)
        #expect(await program.prints("Agree? [y/N] ", typing: "y\n"))
        #expect(await program.prints("Put the wallet card on the reader."))
        #expect(await program.prints("PIN: ", typing: "123456\n"))
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(await peer.commandsWithValues().last == "SET_PIN 123456")
    }
}
