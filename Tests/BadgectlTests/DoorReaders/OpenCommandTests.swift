// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

private let begun =
    #"{"msg":"OPENING","openingType":"proximity","reader":"pkoc-A","state":"connecting","token":3}"#

private func result(_ status: String, _ decision: String, token: String = "3", reason: String = "null") -> String {
    #"{"accessDecision":"\#(decision)","durationMs":9,"key":"k","msg":"OPENING_RESULT","payload":"03","#
        + #""reader":"pkoc-A","reason":\#(reason),"status":"\#(status)","token":\#(token)}"#
}

@Suite("badgectl: open", .timeLimit(.minutes(5))) struct OpenCommandTests {
    @Test(
        "open opens the closest reader or the named one, and says what the reader answers",
        arguments: [["open"], ["open", "pkoc-A"], ["open", "pkoc-A", "--key", "front"]],
        [("granted", 0, "pkoc-A grants access\n"), ("unknown", 0, "pkoc-A does not say whether the door opens\n")]
    )
    func opens(_ arguments: [String], _ expected: (decision: String, code: Int32, text: String)) async throws {
        let peer = try ScriptedPeer.opening { peer in
            peer.send(Say.doorReader)
            peer.answer(arguments.count == 1 ? "TRIGGER" : "OPEN_READER", begun)
            peer.send(begun.replacing("connecting", with: "connected"))
            // The result of another opening.
            peer.send(result("success", "denied", token: "2"))
            peer.send(result("success", expected.decision))
        }
        let program = try RunningProgram("badgectl", arguments + ["--socket", peer.path])
        #expect(await program.exitCode == expected.code)
        #expect(program.text(.output) == expected.text)
    }

    private static let named = Say.doorReader.replacing(#""name":null"#, with: #""name":"Front door""#)

    @Test("open takes the name of a reader")
    func name() async throws {
        let peer = try ScriptedPeer.opening { peer in
            peer.send(Self.named)
            let entry = Self.named.dropFirst(#"{"msg":"DOOR_READER","reader":"#.count).dropLast()
            peer.answer("GET_DOOR_READER_LIST", #"{"msg":"DOOR_READER_LIST","readers":[\#(entry)]}"#)
            peer.answer("OPEN_READER", begun)
            peer.send(result("success", "granted"))
        }
        let program = try RunningProgram("badgectl", ["open", "Front door", "--socket", peer.path])
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(await peer.received().contains { $0.contains("OPEN_READER") && $0.contains("pkoc-A") })
    }

    @Test("open does not choose between two readers of one name")
    func ambiguousName() async throws {
        let peer = try ScriptedPeer.opening { peer in
            peer.send(Self.named)
            let entry = String(Self.named.dropFirst(#"{"msg":"DOOR_READER","reader":"#.count).dropLast())
            let both = entry + "," + entry.replacing("pkoc-A", with: "pkoc-B")
            peer.answer("GET_DOOR_READER_LIST", #"{"msg":"DOOR_READER_LIST","readers":[\#(both)]}"#)
        }
        let program = try RunningProgram("badgectl", ["open", "Front door", "--socket", peer.path])
        await program.ends(2, saying: "2 readers are called Front door\nhint: use the id: pkoc-A, pkoc-B")
    }

    @Test("an opening that fails or is denied ends with 1 and says why")
    func fails() async throws {
        for (message, text) in [
            (result("success", "denied"), "pkoc-A denies access"),
            (
                result("readerFailure", "unknown", reason: #""the reader is revoked""#),
                "not opened: the reader is revoked (readerFailure)"
            ),
        ] {
            let peer = try ScriptedPeer.opening { peer in
                peer.send(Say.doorReader)
                peer.answer("TRIGGER", begun)
                peer.send(message)
            }
            let program = try RunningProgram("badgectl", ["open", "--socket", peer.path])
            await program.ends(1, sayingFirst: "badgectl: error: \(text)\nhint: ")
        }
    }

    @Test("an opening that cannot begin ends at once")
    func missingKey() async throws {
        let peer = try ScriptedPeer.opening { peer in
            peer.send(Say.doorReader)
            let missing = result("keyNotFound", "unknown", token: "null", reason: #""badged has no key store""#)
            peer.answer("OPEN_READER", missing)
        }
        let program = try RunningProgram("badgectl", ["open", "pkoc-A", "--socket", peer.path])
        await program.ends(1, sayingFirst: "badgectl: error: not opened: badged has no key store (keyNotFound)\n")
    }

    @Test("without a reader in reach open says so")
    func nobody() async throws {
        let peer = try ScriptedPeer.opening()
        let program = try RunningProgram("badgectl", ["open", "pkoc-B", "--socket", peer.path])
        await program.ends(1, sayingFirst: "badgectl: error: pkoc-B is not in reach\nhint: ")
    }

    @Test("a user who may not open doors is told at once, not after the search for a reader")
    func denied() async throws {
        let peer = try ScriptedPeer { $0.tellsPermissions(#""readers","scan""#) }
        let program = try RunningProgram("badgectl", ["open", "--socket", peer.path])
        await program.ends(4, sayingFirst: "badgectl: error: this user lacks the permission open\nhint: ")
        #expect(await !peer.commands().contains("START_SCAN"))
    }
}
