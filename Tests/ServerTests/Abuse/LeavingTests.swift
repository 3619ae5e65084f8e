// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Server
import TestSupport
import Testing
import Text
import VirtualEID
import Wire

@Suite("Clients that disconnect", .timeLimit(.minutes(5)))
struct LeavingTests {
    @Test(
        "a client that disconnects at any moment frees the reader, costs no try, and the next client succeeds",
        arguments: Moment.allCases
    )
    @Loop func killed(at moment: Moment) async throws {
        let stage = try await Stage(at: moment)
        let tries = await stage.readers.cardState(in: "Simulator")?.retryCounter
        stage.client.close()
        stage.gate?.open()
        await stage.server.clients(0)
        #expect(!stage.server.isLent())
        #expect(await stage.readers.cardState(in: "Simulator")?.retryCounter == tries)
        #expect(!stage.server.logged.contains { $0.contains("success") })

        let next = try stage.server.connect()
        _ = try #require(await next.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD"))
        _ = try #require(await next.ask(#"{"cmd":"SET_CARD","name":"Simulator","card":{}}"#, "ENTER_PIN"))
        _ = try #require(await next.ask(Stage.setPIN, "ENTER_NEW_PIN"))
        let final = await next.ask(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#, "CHANGE_PIN")
        #expect(final == #"{"msg":"CHANGE_PIN","success":true}"#)
    }

    @Test(
        "a client that closes its writing side receives its answers, the final message and end of file",
        arguments: Moment.allCases
    )
    @Loop func halfClosed(at moment: Moment) async throws {
        let stage = try await Stage(at: moment)
        await stage.client.send(#"{"cmd":"GET_API_LEVEL","request":1}"#, #"{"cmd":"GET_HEALTH","request":2}"#)
        stage.client.finish()
        stage.gate?.open()
        #expect(await stage.client.next("API_LEVEL")?["request"]?.int == 1)
        #expect(await stage.client.next("HEALTH")?["request"]?.int == 2)
        if let name = moment.workflow {
            let final = await stage.client.next(name)
            #expect((final?["reason"] ?? final?["result"]?["reason"]) == .string("User_Cancelled"))
        }
        #expect(await stage.client.next() == nil)
        await stage.server.clients(0)
        #expect(!stage.server.isLent())
    }

    @Test("the reader becomes free when a client disconnects before its question is sent")
    @Loop func goneBeforeTheQuestion() async throws {
        for _ in 0..<30 {
            let stage = try await Stage(at: .enterPIN)
            let gate = stage.readers.gate { _, command in command.cla == 0x00 && command.ins == 0x86 }
            await stage.client.send(Stage.setPIN)
            await gate.arrival()
            // The server detects the disconnection by a failed send or by a hang-up, whichever comes first.
            gate.open()
            stage.client.close()
            await stage.server.clients(0)
            #expect(!stage.server.isLent())
        }
    }

    @Test("an incomplete line at end of file is not a command")
    @Loop func halfLine() async throws {
        let stage = try await Stage(at: .idle)
        await stage.client.send(bytes: Array(#"{"cmd":"GET_API_LEVEL"}"#.utf8))
        stage.client.finish()
        #expect(await stage.client.next() == nil)
    }

    @Test("the reader becomes free when a client starts a workflow and disconnects at once")
    @Loop func disconnectsAtOnce() async throws {
        let server = try await TestServer()
        for _ in 0..<100 {
            let client = try server.connect()
            await client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#, #"{"cmd":"SET_CARD","name":"Simulator"}"#, Stage.setPIN)
            client.close()
        }
        await server.clients(0)
        #expect(!server.isLent())
        let next = try server.connect()
        #expect(
            await next.exchange(#"{"cmd":"GET_READER","name":"Simulator"}"#).last
                == .simulator(card: .null, keypad: false)
        )
    }

    @Test("stopping the server ends every workflow with its final message", arguments: Moment.allCases)
    @Loop func serverEnds(at moment: Moment) async throws {
        let stage = try await Stage(at: moment)
        let idle = try stage.server.connect()
        _ = await idle.exchange()
        Task { @Loop in await stage.server.server.stop() }
        stage.gate?.open()
        if let name = moment.workflow {
            let final = await stage.client.next(name)
            #expect((final?["reason"] ?? final?["result"]?["reason"]) == .string("User_Cancelled"))
        }
        #expect(await stage.client.next() == nil)
        while await idle.next() != nil {}
        await stage.server.clients(0)
        #expect(!stage.server.isLent())
    }
}
