// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

@Suite("badgectl: keys list and credentials", .timeLimit(.minutes(5))) struct KeyListTests {
    @Test(
        "keys list says from when or until when a key can be used",
        arguments: [
            (#""expired":true,"endDate":"2026-01-01T00:00:00Z""#, "expired  since 2026-01-01T00:00:00Z"),
            (#""expired":false,"endDate":"2099-01-01T00:00:00Z""#, "active  until 2099-01-01T00:00:00Z"),
            (#""expired":true,"revoked":true"#, "revoked"), (#""expired":false"#, "active"),
        ]
    )
    func keys(members: String, words: String) async throws {
        let key = #"{"active":true,"id":"k1","protection":"software","protocol":"pkoc",\#(members)}"#
        let peer = try ScriptedPeer { $0.answer("GET_KEYS", #"{"keys":[\#(key)],"msg":"KEYS"}"#) }
        let program = try badgectl(peer, "keys", "list")
        await program.ends(0, printing: "k1  pkoc  \(words)\n")
    }

    @Test("credentials says that it waits")
    func waiting() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("START_CREDENTIALS", #"{"issuers":0,"msg":"CREDENTIALS","validated":false,"watching":true}"#)
        }
        let program = try badgectl(peer, "credentials")
        #expect(await program.prints("Waiting for a card or phone.", on: .error))
        program.signal(2)
        #expect(await program.exitCode == 130)
    }

    @Test("credentials says that nobody can put a card on a reader that is virtual")
    func virtualOnly() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("START_CREDENTIALS", #"{"issuers":0,"msg":"CREDENTIALS","validated":false,"watching":true}"#)
            peer.answer("GET_READER_LIST", Say.list(Say.reader("Simulator", left: nil, insertable: true)))
            peer.untilClosed()
        }
        let program = try badgectl(peer, "credentials")
        #expect(await program.prints("hint: there is only the virtual reader Simulator: ", on: .error))
        program.signal(2)
        #expect(await program.exitCode == 130)
    }
}
