// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

private let phone = String(repeating: "ab", count: 32)
private let desk = String(repeating: "cd", count: 32)

private func device(_ fingerprint: String, _ name: String, paired: Bool = false, pairing: Bool? = nil) -> String {
    let pairing = pairing.map { #","pairing":\#($0)"# } ?? ""
    return #"{"fingerprint":"\#(fingerprint)","name":"\#(name)","paired":\#(paired),"connected":false\#(pairing)}"#
}

private func remote(_ lenders: String..., borrowers: String = "") -> String {
    #"{"msg":"REMOTE","enabled":true,"share":true,"fingerprint":"\#(desk)","lenders":["#
        + lenders.joined(separator: ",") + #"],"borrowers":[\#(borrowers)],"used":[],"pairing":false}"#
}

private func question(_ error: String? = nil) -> String {
    #"{"msg":"ENTER_PAIRING_CODE","question":1,"name":"Phone","fingerprint":"\#(phone)","ownFingerprint":"\#(desk)""#
        + (error.map { #","error":"\#($0)""# } ?? "") + "}"
}

private let off =
    #"{"msg":"REMOTE","enabled":false,"share":false,"lenders":[],"borrowers":[],"used":[],"pairing":false}"#

@Suite("badgectl: remote", .timeLimit(.minutes(5))) struct RemoteCommandTests {
    @Test("pair waits for the device, shows both fingerprints and the warning, and sends each code once")
    func pair() async throws {
        let peer = try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("GET_REMOTE", remote(device(desk, "Other", pairing: false)))
            peer.send(remote(device(desk, "Other", pairing: false), device(phone, "Phone", pairing: true)))
            peer.command("PAIR_READER")
            peer.send(#"{"msg":"PAIR_READER","fingerprint":"\#(phone)","name":"Phone"}"#)
            peer.send(question())
            peer.command("SET_PAIRING_CODE")
            peer.send(question("The code is wrong: type the digits that the device shows"))
            peer.command("SET_PAIRING_CODE")
            peer.send(#"{"msg":"PAIR_READER","success":true,"fingerprint":"\#(phone)","name":"Phone"}"#)
        }
        let program = try RunningProgram("badgectl", ["remote", "pair", "--socket", peer.path], hasTerminal: true)
        #expect(await program.prints("Pairing code: ", typing: "777\n"))
        #expect(await program.prints("Pairing code: ", typing: "0777\n"))
        #expect(await program.prints("Pairing code: ", typing: "0778\n"))
        await program.ends(0, printing: "Paired with Phone, \(phone).\n")
        let dialogue = program.dialogue
        #expect(dialogue.contains("Its fingerprint:\n  \(phone)\nThis host:\n  \(desk)\n"))
        #expect(dialogue.contains("do not protect against a man in the middle"))
        #expect(dialogue.contains("The code is wrong: type the digits that the device shows.\n"))
        #expect(!program.everything.contains("0777") && !program.everything.contains("0778"))
        let commands = await peer.received()
        #expect(commands.count { $0.contains("SET_PAIRING_CODE") } == 2)
        #expect(commands.contains { $0.contains("PAIR_READER") && $0.contains(phone) })
    }

    @Test("a failed pairing ends with 1 and says why; a script gives the code on standard input")
    func failedPairing() async throws {
        let peer = try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("GET_REMOTE", remote(device(phone, "Phone", pairing: false)))
            peer.command("PAIR_READER")
            peer.send(question())
            peer.command("SET_PAIRING_CODE")
            peer.send(#"{"msg":"PAIR_READER","success":false,"error":"Three wrong codes were entered"}"#)
        }
        let arguments = ["remote", "pair", String(phone.prefix(8)), "--pin-stdin", "--socket", peer.path]
        let program = try RunningProgram("badgectl", arguments, input: "0777\n")
        await program.ends(1, saying: "badgectl: error: three wrong codes were entered\n")
        #expect(await peer.received().contains { $0.contains(#""value":"0777""#) })
    }

    @Test("devices that cannot be told apart, or that are missing, are not paired")
    func choice() async throws {
        for (state, arguments, code, text) in [
            (
                remote(device(phone, "P", pairing: true), device(desk, "P", pairing: true)), ["P"], Int32(2),
                "2 devices are called P"
            ),
            (remote(device(phone, "P", pairing: true), device(desk, "D", pairing: true)), [], 2, "2 devices wait"),
            (remote(device(phone, "P", pairing: false)), ["--timeout", "0"], 1, "no device waits for a pairing"),
            (off, [], 1, "badged uses no readers of other devices"),
        ] {
            let peer = try ScriptedPeer { peer in
                peer.tellsPermissions()
                peer.answer("GET_REMOTE", state)
            }
            let all = ["remote", "pair", "--pin-stdin", "--socket", peer.path] + arguments
            let program = try RunningProgram("badgectl", all)
            #expect(await program.exitCode == code, "\(program.everything)")
            #expect(program.text(.error).contains("badgectl: error: \(text)"), "\(program.everything)")
            #expect(await !peer.commands().contains("PAIR_READER"))
        }
    }

    @Test(
        "a user who may not pair is told so before anything is waited for or asked",
        arguments: [["pair"], ["share", "--pair"], ["forget", "Phone"]]
    )
    func denied(arguments: [String]) async throws {
        let peer = try ScriptedPeer { $0.tellsPermissions(#""readers","cards""#) }
        let program = try RunningProgram("badgectl", ["remote", "--socket", peer.path] + arguments)
        await program.ends(4, sayingFirst: "badgectl: error: this user lacks the permission remote\nhint: ")
        #expect(await peer.commands() == ["GET_INFO"])
    }

    @Test("share --pair writes the code to standard output; with --json it is on the terminal alone")
    func share() async throws {
        for isJSON in [false, true] {
            let peer = try ScriptedPeer { peer in
                peer.tellsPermissions()
                peer.answer("GET_REMOTE", remote())
                peer.command("OPEN_PAIRING")
                peer.send(#"{"msg":"OPEN_PAIRING"}"#)
                peer.send(#"{"msg":"PAIRING_CODE","code":"0777","fingerprint":"\#(desk)","seconds":120}"#)
                peer.send(#"{"msg":"OPEN_PAIRING","success":true,"fingerprint":"\#(phone)","name":"Phone"}"#)
            }
            let arguments = ["remote", "share", "--pair", "--socket", peer.path] + (isJSON ? ["--json"] : [])
            let program = try RunningProgram("badgectl", arguments, hasTerminal: true)
            let code = await program.exitCode
            #expect(code == 0, "\(program.everything)")
            #expect(program.dialogue.contains("Fingerprint of this host: \(desk)\n"))
            #expect(program.dialogue.contains("Paired with Phone, \(phone).\n"))
            if isJSON {
                #expect(!program.text(.output).contains("0777") && program.text(.output).contains("OPEN_PAIRING"))
                #expect(program.dialogue.contains("0777"))
            } else {
                #expect(program.text(.output) == "0777\n")
            }
        }
    }

    @Test("Ctrl-C closes the pairing mode")
    func interrupted() async throws {
        let peer = try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("GET_REMOTE", remote())
            peer.command("OPEN_PAIRING")
            peer.send(#"{"msg":"OPEN_PAIRING"}"#)
            peer.send(#"{"msg":"PAIRING_CODE","code":"0777","fingerprint":"\#(desk)","seconds":120}"#)
            peer.command("CANCEL")
            peer.send(#"{"msg":"OPEN_PAIRING","success":false,"error":"Cancelled"}"#)
        }
        let program = try RunningProgram("badgectl", ["remote", "share", "--pair", "--socket", peer.path])
        #expect(await program.prints("0777\n", on: .output))
        program.signal(2)
        await program.ends(130, saying: "no device is paired")
    }

    @Test("list shows lenders and borrowers, forget removes the pairing with the named device")
    func listAndForget() async throws {
        let state = remote(
            device(phone, "Phone", paired: true, pairing: false),
            borrowers: device(desk, "Desk", paired: true)
        )
        let list = try ScriptedPeer { peer in
            for _ in 0..<2 { peer.answer("GET_REMOTE", state) }
        }
        let program = try RunningProgram("badgectl", ["remote", "list", "--timeout", "0", "--socket", list.path])
        await program.ends(0, printing: "\(phone)  lends  paired  Phone\n\(desk)  borrows  paired  Desk\n")

        let peer = try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("GET_REMOTE", state)
            peer.answer("REMOVE_REMOTE", remote())
        }
        let forget = try RunningProgram("badgectl", ["remote", "forget", "Desk", "--yes", "--socket", peer.path])
        #expect(await forget.exitCode == 0)
        #expect(await peer.received().contains { $0.contains("REMOVE_REMOTE") && $0.contains(desk) })

        let other = try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("GET_REMOTE", state)
        }
        let missing = try RunningProgram("badgectl", ["remote", "forget", "Nobody", "--socket", other.path])
        await missing.ends(1, saying: "no device Nobody is paired")
    }

    @Test("forget takes the whole fingerprint of a pairing that badged cannot read, and so does not list")
    func forgetUnlisted() async throws {
        let peer = try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("GET_REMOTE", remote())
            peer.answer("REMOVE_REMOTE", remote())
        }
        let arguments = ["remote", "forget", phone.uppercased(), "--yes", "--socket", peer.path]
        let forget = try RunningProgram("badgectl", arguments)
        #expect(await forget.exitCode == 0, "\(forget.everything)")
        #expect(await peer.received().contains { $0.contains("REMOVE_REMOTE") && $0.contains(phone) })
    }

    @Test("remote share says when nothing is lent, and a user without the permission gets 4")
    func refusals() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_REMOTE", off)
        }
        let program = try RunningProgram("badgectl", ["remote", "share", "--socket", peer.path])
        await program.ends(1, sayingFirst: "badgectl: error: this host lends no readers\nhint: ")
        let denying = try ScriptedPeer { peer in
            peer.tellsPermissions()
            peer.answer("GET_REMOTE", remote())
            peer.answer("OPEN_PAIRING", #"{"msg":"ACCESS_DENIED","error":"OPEN_PAIRING"}"#)
        }
        let denied = try RunningProgram("badgectl", ["remote", "share", "--pair", "--socket", denying.path])
        #expect(await denied.exitCode == 4)
        for words in [["list", "--pair"], ["forget"], ["list", "extra"], ["pair", "a", "b"]] {
            let wrong = try RunningProgram("badgectl", ["remote"] + words + ["--socket", peer.path])
            #expect(await wrong.exitCode == 2, "\(words)")
        }
    }
}
