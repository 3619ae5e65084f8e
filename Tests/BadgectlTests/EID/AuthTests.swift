// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text

@Suite("badgectl: auth", .timeLimit(.minutes(5))) struct AuthTests {
    private static let url = "https://a.example/token"

    @Test("auth shows the service, asks for consent and the PIN, and ends with the address")
    func atTheTerminal() async throws {
        let peer = try ScriptedPeer.authentication { peer in
            let choice = peer.answer("SET_ACCESS_RIGHTS", Say.rights(#""Address","FamilyName""#))
            #expect(choice?["chat"] == .array([]))
            peer.command("ACCEPT")
            peer.ask("PIN")
            peer.send(Say.authenticated)
        }
        let program = try badgectl(peer, "auth", Self.url, hasTerminal: true)
        #expect(await program.prints("Agree? [y/N, numbers to tick or untick, t: terms of usage] "))
        #expect(program.echoes)
        program.type("7\n")
        #expect(await program.prints("Type y to agree, n to end, t for the terms of usage, or numbers from the list."))
        // The terminal discards what is typed before the question.
        #expect(await program.prints("Agree? ", typing: "t\n"))
        #expect(await program.prints("A company\r\nMain street 1\r\n"))
        #expect(await program.prints("Agree? ", typing: "1\n"))
        #expect(await program.prints("  1 [ ] given names"))
        #expect(await program.prints("Agree? ", typing: "y\n"))
        #expect(await program.prints("PIN: "))
        #expect(!program.echoes)
        program.type("123456\n")
        await program.ends(0, printing: "https://a.example/back?ResultMajor=ok\n")
        let lines = program.dialogue.split(separator: "\n").filter { !$0.hasPrefix("Agree? ") }
        #expect(
            lines.joined(separator: "\n") == """
                service  A [2Jservice
                website  https://a.example
                purpose  Test
                issuer   An issuer
                valid    2026-01-01 to 2026-12-31
                The service asks for:
                        postal address
                        family name
                        age verification: 18 or older, born on 2008-06-15 or before
                  1 [x] given names
                Type y to agree, n to end, t for the terms of usage, or numbers from the list.
                A company
                Main street 1
                The service asks for:
                        postal address
                        family name
                        age verification: 18 or older, born on 2008-06-15 or before
                  1 [ ] given names
                PIN:\u{20}
                Leave the card on the reader: checking the PIN ...
                The service has received the data.
                """
        )
        #expect(values(await peer.received()).last == "SET_PIN 123456")
    }

    @Test("Without agreement the workflow ends before a card is used", arguments: ["n\n", "\n"])
    func declined(answer: String) async throws {
        let peer = try ScriptedPeer.authentication { peer in
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
        }
        let program = try badgectl(peer, "auth", Self.url, hasTerminal: true)
        #expect(await program.prints("Agree? ", typing: answer))
        await program.ends(1, sayingFirst: "badgectl: error: not agreed: the service got no data\n")
    }

    @Test("A script agrees with --yes, gives the PIN on standard input, and gets only messages with --json")
    func script() async throws {
        let peer = try ScriptedPeer.acceptedAuthentication(asking: "PIN") { $0.send(Say.authenticated) }
        let program = try badgectl(peer, "auth", Self.url, "--yes", "--pin-stdin", "--json", input: "123456\n")
        #expect(await program.exitCode == 0, "\(program.everything)")
        let lines = program.text(.output).split(separator: "\n").map(String.init)
        #expect(lines.last == Say.authenticated && lines.contains(Say.rights()))
        #expect(lines.contains { $0.contains(#""msg":"CERTIFICATE""#) })
        #expect(program.text(.error).isEmpty)
        let run = await peer.received().compactMap { try? JSON($0.utf8) }.first { $0["cmd"] == .string("RUN_AUTH") }
        #expect(run?["tcTokenURL"] == .string(Self.url) && run?["developerMode"] == nil)
    }

    @Test("Without --yes a script does not agree")
    func noConsent() async throws {
        let peer = try ScriptedPeer.authentication { peer in
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
        }
        let program = try badgectl(peer, "auth", Self.url, "--pin-stdin", input: "123456\n")
        await program.ends(1, printing: "")
        // The service and its request are shown where the question would be.
        #expect(program.text(.error).contains("The service asks for:\n"))
        #expect(
            program.text(.error).hasSuffix(
                """
                badgectl: error: there is no terminal to ask on
                hint: run badgectl in a terminal, or use --yes to give the service everything that it asks for

                """
            )
        )
        #expect(!(await peer.received().contains { $0.contains("SET_PIN") || $0.contains("ACCEPT") }))
    }

    @Test("A failure says what has happened, why and what to do, and shows the way back")
    func failure() async throws {
        let peer = try ScriptedPeer { peer in
            peer.beginAuth()
            peer.send(
                #"{"msg":"AUTH","result":{"description":"D.","language":"en","major":"x#error","message":"The server could "#
                    + #"not be reached.","minor":"y","reason":"Get_TcToken_Network_Error"},"url":"https://a.example/e"}"#
            )
        }
        let program = try badgectl(peer, "auth", Self.url, "--developer-mode")
        await program.ends(1, printing: "https://a.example/e\n")
        #expect(
            program.text(.error) == """
                badgectl: error: the server could not be reached (Get_TcToken_Network_Error): the service got no data
                hint: check the network, and [eid] proxy in badged.conf(5); if other services work, tell this one

                """
        )
        #expect(await peer.received().contains { $0.contains(#""developerMode":true"#) })
    }

    @Test("A refused address is an error, a missing one is wrong usage")
    func refused() async throws {
        let peer = try ScriptedPeer { peer in
            peer.hasAnchors()
            peer.answer("RUN_AUTH", #"{"error":"Validation of tcTokenURL failed","msg":"AUTH"}"#)
        }
        let program = try badgectl(peer, "auth", "https://a.example/t")
        await program.ends(1, saying: "Validation of tcTokenURL failed")
        let usage = try RunningProgram("badgectl", ["auth"])
        await usage.ends(2, sayingFirst: "badgectl: error: auth needs URL, or --self\n")
    }

    @Test("--self takes no address, and says what is missing in badged.conf")
    func own() async throws {
        let both = try RunningProgram("badgectl", ["auth", "--self", "https://a.example/"])
        #expect(await both.exitCode == 2)
        let unnamed = try RunningProgram("badgectl", ["auth", "--self"])
        await unnamed.ends(1, saying: "self_information = ADDRESS")
    }
}
