// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

@testable import badgectl

/// What people read at the shell: no commands of the protocol, and help beside the commands.
@Suite("badgectl: plain words", .timeLimit(.minutes(5))) struct PlainWordTests {
    @Test(
        "commands of the protocol become commands of the shell",
        arguments: [
            ("send MPIN_START_DVS with a new token", "run badgectl mpin register-dvs with a new token"),
            ("reset the card (RESET_CARD, badgectl wallet reset-card)", "reset the card (badgectl wallet reset-card)"),
            (
                "GET_KEYS names those of a user, DELETE_KEY deletes one",
                "badgectl keys list names those of a user, badgectl keys delete deletes one"
            ),
            ("UNPAIR with the card deletes one", "badgectl wallet unpair with the card deletes one"),
            ("another computer (UNPAIR, badgectl wallet unpair)", "another computer (badgectl wallet unpair)"),
            ("see the advice of GET_HEALTH", "see the advice of badgectl health"),
            ("a_b and A_B stay", "a_b and A_B stay"),
        ]
    )
    func commands(text: String, plain: String) { #expect(PlainWords.replaced(text, ofOwnDaemon: false) == plain) }

    @Test("a badged that was started by hand has no journal and no unit")
    func ownDaemon() {
        #expect(!PlainWords.replaced(CommandFailure.seeLog, ofOwnDaemon: true).contains("journalctl"))
        #expect(PlainWords.replaced(CommandFailure.seeLog, ofOwnDaemon: false) == CommandFailure.seeLog)
    }

    @Test("a hint names no journal where the socket is not that of the system", arguments: [true, false])
    func otherSocket(isInEnvironment: Bool) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("GET_READER_LIST")
            peer.hangUp()
        }
        let program = try RunningProgram(
            "badgectl",
            isInEnvironment ? ["readers"] : ["readers", "--socket", peer.path],
            environment: isInEnvironment ? ["LC_ALL": "C.UTF-8", "BADGED_SOCKET": peer.path] : ["LC_ALL": "C.UTF-8"]
        )
        await program.ends(3, saying: "the log is where badged was started")
        #expect(!program.text(.error).contains("journalctl"))
    }

    @Test("refusals have no words of the protocol")
    func refusals() async throws {
        for (message, text) in [
            (#"{"error":"GET_READER_LIST","msg":"BAD_STATE"}"#, "badged cannot do this now"),
            (
                #"{"error":"GET_READER_LIST","msg":"UNKNOWN_COMMAND"}"#,
                "the badged that runs does not know this command"
            ),
            (#"{"msg":"INFO","VersionInfo":{"Name":"x"}}"#, "badged gave an answer that badgectl does not know"),
        ] {
            let peer = try ScriptedPeer { $0.answer("GET_READER_LIST", message) }
            await (try badgectl(peer, "readers")).ends(1, sayingFirst: "badgectl: error: \(text)\nhint: ")
        }
        let peer = try ScriptedPeer {
            $0.answer("GET_KEYS", #"{"msg":"KEYS","error":"Endpoint","description":"send SETUP_ENDPOINT first"}"#)
        }
        await (try badgectl(peer, "keys")).ends(
            1,
            sayingFirst: "badgectl: error: this user has no keys in badged yet\n"
        )
    }

    @Test("help has topics, and examples of the main commands")
    func help() async throws {
        for (topic, words) in [
            ("exit-codes", "130"), ("permissions", "documents"), ("formatting", "--json"),
        ] {
            let program = try RunningProgram("badgectl", ["help", topic])
            await program.ends(0, showing: words)
            let lines = program.text(.output).split(separator: "\n")
            #expect(lines.allSatisfy { $0.count <= 80 }, "\(lines)")
        }
        #expect(Help.text(for: nil).contains("exit-codes"))
        for name in ["auth", "change-pin", "document", "wallet", "keys", "remote", "anchors", "agent"] {
            let command = try #require(CommandTable.commands.first { $0.name == name })
            #expect(Help.text(for: command).contains("Examples:\n  # "), "\(name)")
        }
    }

    @Test("keys have names for other programs")
    func names() async throws {
        let keys = try ScriptedPeer { peer in
            let parts = [("aa", "Office"), ("bb", "Home"), ("cc", "Home"), ("dd", "")].map { id, label in
                #"{"id":"\#(id)","protocol":"pkoc","label":"\#(label)","active":true}"#
            }
            peer.answer("GET_KEYS", #"{"msg":"KEYS","keys":[\#(parts.joined(separator: ","))]}"#)
        }
        await (try badgectl(keys, "keys", "list", "--names")).ends(0, printing: "Office\nbb\ncc\ndd\n")
    }

    @Test(
        "what is no address of a service is wrong usage",
        arguments: ["hello", "https://", "https:///x", "http://?x"]
    )
    func noAddress(text: String) async throws {
        let program = try RunningProgram("badgectl", ["auth", text])
        await program.ends(2, sayingFirst: "badgectl: error: \(text) is not the address of a service\nhint: ")
    }
}
