// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text
import Wire

@Suite("badgectl: auth", .timeLimit(.minutes(5))) struct AuthTests {
    private static let url = "https://a.example/token"

    @Test("the service is shown, a right unticked, the PIN asked for unseen, and the last line is the address")
    func atTheTerminal() async throws {
        let peer = try ScriptedPeer { peer in
            peer.startAuth()
            let choice = peer.answer("SET_ACCESS_RIGHTS", Say.rights(#""Address","FamilyName""#))
            #expect(choice?["chat"] == .array([]))
            peer.command("ACCEPT")
            peer.ask("PIN")
            peer.send(Say.authenticated)
            peer.untilClosed()
        }
        let program = try badgectl(peer, "auth", Self.url, hasTerminal: true)
        #expect(await program.says("Agree? (y, n, or numbers to tick or untick) "))
        #expect(program.echoes)
        program.type("7\n")
        #expect(await program.says("Type y to agree, n to end it, or numbers from the list.", on: .output))
        // What is typed before the question is thrown away.
        #expect(await program.says("Agree? "))
        program.type("1\n")
        #expect(await program.says("  1 [ ] given names", on: .output))
        #expect(await program.says("Agree? "))
        program.type("y\n")
        #expect(await program.says("PIN: "))
        #expect(!program.echoes)
        program.type("123456\n")
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(
            program.text(.output) == """
                service  A [2Jservice
                address  https://a.example
                purpose  Test
                issuer   An issuer
                valid    2026-01-01 to 2026-12-31
                It asks for:
                        address
                        family name
                        age verification: 18 or older
                  1 [x] given names
                Type y to agree, n to end it, or numbers from the list.
                It asks for:
                        address
                        family name
                        age verification: 18 or older
                  1 [ ] given names
                Leave the card on the reader: checking the PIN ...
                The service has what it asked for.
                The browser goes on at:
                https://a.example/back?ResultMajor=ok

                """
        )
        #expect(values(await peer.received()).last == "SET_PIN 123456")
    }

    @Test("what is no agreement ends it before any card", arguments: ["n\n", "\n"])
    func declined(answer: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.startAuth()
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
            peer.untilClosed()
        }
        let program = try badgectl(peer, "auth", Self.url, hasTerminal: true)
        #expect(await program.says("Agree? "))
        program.type(answer)
        #expect(await program.exitCode == 1)
        #expect(program.text(.error).hasPrefix("badgectl: error: not agreed: the service got nothing\n"))
    }

    @Test("a script agrees with --yes and gives the PIN on standard input; with --json messages are all of the output")
    func script() async throws {
        let peer = try ScriptedPeer { peer in
            peer.startAuth()
            peer.command("ACCEPT")
            peer.ask("PIN")
            peer.send(Say.authenticated)
            peer.untilClosed()
        }
        let program = try badgectl(peer, "auth", Self.url, "--yes", "--pin-stdin", "--json", input: "123456\n")
        #expect(await program.exitCode == 0, "\(program.everything)")
        let lines = program.text(.output).split(separator: "\n").map(String.init)
        #expect(lines.last == Say.authenticated && lines.contains(Say.rights()))
        #expect(lines.contains { $0.contains(#""msg":"CERTIFICATE""#) })
        #expect(program.text(.error).isEmpty)
        let run = await peer.received().compactMap { try? JSON($0.utf8) }.first { $0["cmd"] == .string("RUN_AUTH") }
        #expect(run?["tcTokenURL"] == .string(Self.url) && run?["developerMode"] == nil)
    }

    @Test("without --yes a script agrees to nothing")
    func noConsent() async throws {
        let peer = try ScriptedPeer { peer in
            peer.startAuth()
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
            peer.untilClosed()
        }
        let program = try badgectl(peer, "auth", Self.url, "--pin-stdin", input: "123456\n")
        #expect(await program.exitCode == 1)
        #expect(
            program.text(.error) == """
                badgectl: error: no terminal to ask on
                hint: run it in a terminal, or say --yes when the service may have all it asks for

                """
        )
        #expect(!(await peer.received().contains { $0.contains("SET_PIN") || $0.contains("ACCEPT") }))
    }

    @Test("a failure names what happened, the reason and what to do, and still shows the way back")
    func failure() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_AUTH")
            peer.send(#"{"msg":"AUTH"}"#)
            peer.send(
                #"{"msg":"AUTH","result":{"description":"D.","language":"en","major":"x#error","message":"The server could "#
                    + #"not be reached.","minor":"y","reason":"Get_TcToken_Network_Error"},"url":"https://a.example/e"}"#
            )
            peer.untilClosed()
        }
        let program = try badgectl(peer, "auth", Self.url, "--developer-mode")
        #expect(await program.exitCode == 1)
        #expect(program.text(.output) == "The browser goes back to:\nhttps://a.example/e\n")
        #expect(
            program.text(.error) == """
                badgectl: error: the server could not be reached (Get_TcToken_Network_Error)
                hint: check the address and the network

                """
        )
        #expect(await peer.received().contains { $0.contains(#""developerMode":true"#) })
    }

    @Test("a refused address is an error, and none is wrong usage")
    func refused() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("RUN_AUTH", #"{"error":"Validation of tcTokenURL failed","msg":"AUTH"}"#)
            peer.untilClosed()
        }
        let program = try badgectl(peer, "auth", "nonsense")
        #expect(await program.exitCode == 1)
        #expect(program.text(.error).contains("Validation of tcTokenURL failed"))
        let usage = try RunningProgram("badgectl", ["auth"])
        #expect(await usage.exitCode == 2)
        #expect(usage.text(.error).hasPrefix("badgectl: error: auth needs URL\n"))
    }
}
