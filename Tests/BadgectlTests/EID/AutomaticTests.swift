// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import TestSupport
import Testing
import Text

@Suite("badgectl: answers without a person", .timeLimit(.minutes(5))) struct AutomaticTests {
    private static let url = "https://a.example/token"
    private static let rejected = #"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#

    private func pinFile(_ content: String = "123456\n", mode: mode_t = 0o600) throws -> (TemporaryFolder, String) {
        let folder = try TemporaryFolder()
        try folder.write("pin", Array(content.utf8))
        chmod(folder.path + "/pin", mode)
        return (folder, folder.path + "/pin")
    }

    private func auth(_ peer: ScriptedPeer, _ more: [String], credentials: String? = nil) throws -> RunningProgram {
        var environment = ["LC_ALL": "C.UTF-8"]
        environment["CREDENTIALS_DIRECTORY"] = credentials
        let arguments = ["--socket", peer.path, "auth", Self.url, "--automatic"] + more
        return try RunningProgram("badgectl", arguments, input: "", environment: environment)
    }

    private func automatic(_ lines: [String]) -> [String] {
        lines.filter { $0.contains(#""automatic":true"#) }
    }

    @Test("It grants the rights of the list, and gives the PIN once, marked as automatic")
    func succeeds() async throws {
        let (folder, _) = try pinFile()
        let peer = try ScriptedPeer.authentication { peer in
            peer.answer("SET_ACCESS_RIGHTS", Say.rights(#""Address","FamilyName""#))
            peer.command("ACCEPT")
            peer.ask("PIN")
            peer.send(Say.authenticated)
        }
        let list = "Address, FamilyName, AgeVerification, Pseudonym"
        let program = try auth(peer, ["--rights", list], credentials: folder.path)
        await program.ends(0, printing: "https://a.example/back?ResultMajor=ok\n")
        let lines = await peer.received()
        #expect(lines.contains { $0.contains("SET_ACCESS_RIGHTS") && $0.contains(#""chat":[]"#) })
        #expect(automatic(lines).count == 1 && values(lines).last == "SET_PIN 123456")
        #expect(!program.everything.contains("123456"))
    }

    @Test("A service that requires more than the list gets nothing")
    func tooMuch() async throws {
        let (folder, path) = try pinFile()
        let peer = try ScriptedPeer.authentication { peer in
            peer.command("CANCEL")
            peer.send(Self.rejected)
        }
        let program = try auth(peer, ["--rights", "Address,FamilyName", "--pin-file", path])
        await program.ends(1, saying: "the service requires more than --rights allows")
        withExtendedLifetime(folder) {}
    }

    /// What asks after the PIN was given, and what badgectl says then.
    private static let questions = [
        ("PIN", Say.reader(left: 2), "is wrong"), ("CAN", Say.reader(left: 1), "the card needs the CAN"),
        ("PUK", Say.reader(left: 0), "the card needs the PUK"), ("PIN", Say.reader(keypad: true), "has a keypad"),
    ]

    @Test("No second question is answered, whatever it asks for", arguments: questions)
    func once(kind: String, reader: String, text: String) async throws {
        let (folder, path) = try pinFile()
        let peer = try ScriptedPeer.acceptedAuthentication(asking: "PIN") { peer in
            peer.send(Say.event(reader))
            peer.send(Say.enter(kind, reader))
            peer.command("CANCEL")
            peer.send(Self.rejected)
        }
        let program = try auth(peer, ["--rights", "all", "--pin-file", path])
        await program.ends(1, saying: text)
        #expect(values(await peer.received()).filter { $0.hasPrefix("SET_PIN") } == ["SET_PIN 123456"])
        withExtendedLifetime(folder) {}
    }

    @Test("An agent ends after a wrong PIN, and goes on after a refused one", arguments: [true, false])
    func agent(isWrong: Bool) async throws {
        let (folder, path) = try pinFile()
        let refused = #"{"error":"No automatic PIN","msg":"ENTER_PIN","reader":{"# + Say.reader() + "}}"
        let peer = try ScriptedPeer { peer in
            peer.servesBrowsers()
            for _ in 0..<(isWrong ? 1 : 2) {
                peer.send(#"{"msg":"AUTH"}"#)
                peer.send(Say.rights())
                peer.answer("GET_CERTIFICATE", Say.certificate)
                peer.command("ACCEPT")
                peer.ask("PIN")
                if isWrong {
                    peer.send(Say.event(Say.reader(left: 2)))
                    peer.send(Say.enter("PIN", Say.reader(left: 2)))
                } else {
                    peer.send(refused)
                }
                peer.command("CANCEL")
                peer.send(Self.rejected)
            }
            if !isWrong { peer.hangUp() }
        }
        let program = try badgectl(peer, "agent", "--automatic", "--rights", "all", "--pin-file", path)
        if isWrong {
            await program.ends(1, saying: "is wrong")
            #expect(values(await peer.received()).filter { $0.hasPrefix("SET_PIN") } == ["SET_PIN 123456"])
        } else {
            // badged has closed the connection, so the agent waits for it.
            #expect(await program.prints("Waiting until it runs again", on: .error))
            let pins = values(await peer.received()).filter { $0.hasPrefix("SET_PIN") }
            #expect(pins == ["SET_PIN 123456", "SET_PIN 123456"])
            program.signal(SIGTERM)
            _ = await program.exitCode
        }
        withExtendedLifetime(folder) {}
    }

    /// What is wrong with the file of the PIN.
    private static let files: [(content: String, mode: mode_t, text: String)] = [
        ("123456\n", 0o640, "can be read by other users"), ("12345\n", 0o600, "has no PIN of 6 digits"),
        ("1234567", 0o600, "has no PIN of 6 digits"), ("123456\n\n", 0o600, "has no PIN of 6 digits"),
        ("", 0o600, "has no PIN of 6 digits"),
    ]

    @Test("A file that others can read, or without a PIN, is refused before badged is asked", arguments: files)
    func file(content: String, mode: mode_t, text: String) async throws {
        let (folder, path) = try pinFile(content, mode: mode)
        let program = try RunningProgram(
            "badgectl",
            ["auth", Self.url, "--automatic", "--rights", "all", "--pin-file", path],
            input: "",
            environment: ["LC_ALL": "C.UTF-8"]
        )
        await program.ends(1, saying: text)
        withExtendedLifetime(folder) {}
    }

    @Test(
        "Options that do not fit are wrong usage",
        arguments: [
            ["--automatic", "--pin-file", "/x"], ["--automatic", "--rights", "all"], ["--rights", "all"],
            ["--automatic", "--rights", "GivenName", "--pin-file", "/x"],
            ["--automatic", "--rights", "CanAllowed", "--pin-file", "/x"],
            ["--automatic", "--rights", "all", "--pin-file", "/x", "--pin-stdin"],
            ["--automatic", "--rights", "all", "--pin-file", "/x", "--yes"],
        ]
    )
    func usage(options: [String]) async throws {
        let program = try RunningProgram(
            "badgectl",
            ["auth", Self.url] + options,
            input: "",
            environment: ["LC_ALL": "C.UTF-8"]
        )
        #expect(await program.exitCode == 2, "\(program.everything)")
    }
}
