// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

@Suite("badgectl: irk", .timeLimit(.minutes(5))) struct ReaderKeyListTests {
    @Test(
        "irk lists the keys, with the order of their bytes when it is known",
        arguments: [
            (#""mostSignificantFirst""#, "most significant byte first"),
            (#""leastSignificantFirst""#, "least significant byte first"), ("null", "the reader was not received yet"),
        ]
    )
    func lists(order: String, words: String) async throws {
        let keys = #"[{"name":"front","order":\#(order)}]"#
        let peer = try ScriptedPeer { $0.answer("GET_READER_KEYS", #"{"keys":\#(keys),"msg":"READER_KEYS"}"#) }
        let program = try badgectl(peer, "irk")
        await program.ends(0, printing: "front  \(words)\n")
    }

    @Test("a refusal is an error")
    func refused() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("REMOVE_READER_KEY", #"{"error":"there is no key with this name","msg":"READER_KEYS"}"#)
        }
        let program = try badgectl(peer, "irk", "remove", "front")
        #expect(await program.exitCode != 0)
        #expect(program.text(.error).contains("there is no key with this name"), "\(program.everything)")
    }
}
