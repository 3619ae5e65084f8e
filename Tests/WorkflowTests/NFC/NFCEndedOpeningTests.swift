// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import NFCTestSupport
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("Workflows that end while their card on an NFC reader is opened", .timeLimit(.minutes(5)))
struct NFCEndedOpeningTests {
    @Test(
        "the next client gets its question, READER shows the card, and no try is spent",
        arguments: ["CANCEL", "close", "both"]
    )
    @Loop func ended(ending: String) async throws {
        let fixture = try await NFCFixture()
        try await fixture.insertAndWait()
        // A client comes while the card of the client before it is still reset.
        for _ in 0..<10 {
            let client = try fixture.server.connect()
            let cancel = ending == "close" ? [] : [#"{"cmd":"CANCEL"}"#]
            await client.send([#"{"cmd":"RUN_CHANGE_PIN"}"#] + cancel)
            if ending == "CANCEL" {
                while let message = await client.next("CHANGE_PIN"), message["success"] == nil {}
            }
            client.close()
        }
        let next = try await ScriptedClient(fixture.server, reader: fixture.reader)
        let seen = await next.client.answer(to: #"{"cmd":"GET_READER","name":"\#(fixture.reader)"}"#)
        #expect(seen?["card"]?["retryCounter"] == .number("3"))
        await next.client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        var isAsked = false
        while let message = await next.client.next() {
            isAsked = message["msg"] == .string("ENTER_PIN")
            if isAsked { break }
            // The workflow of an earlier client may still end.
            let error = message["error"]?.string ?? ""
            #expect(!error.contains("does not answer"), "\(message)")
        }
        #expect(isAsked)
        #expect(await fixture.card.eidState?.judgedPINs == 0)
    }
}
