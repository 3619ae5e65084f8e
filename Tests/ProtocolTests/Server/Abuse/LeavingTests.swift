// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Server
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("Clients that disconnect", .timeLimit(.minutes(5)))
struct LeavingTests {
    @Test(
        "a client that disconnects at any moment frees the reader, costs no try, and the next client succeeds",
        arguments: Moment.allCases
    )
    @Loop func killed(at moment: Moment) async throws {
        let fixture = try await Fixture(at: moment)
        let tries = await fixture.readers.cardState(in: "Simulator")?.retryCounter
        fixture.client.close()
        fixture.gate?.open()
        await fixture.server.clients(0)
        #expect(!fixture.server.isLent())
        #expect(await fixture.readers.cardState(in: "Simulator")?.retryCounter == tries)
        #expect(!fixture.server.logged.contains { $0.contains("success") })

        let next = try fixture.server.connect()
        _ = try #require(await next.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD"))
        _ = try #require(await next.ask(#"{"cmd":"SET_CARD","name":"Simulator","card":{}}"#, "ENTER_PIN"))
        _ = try #require(await next.ask(Fixture.setPIN, "ENTER_NEW_PIN"))
        let final = await next.ask(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#, "CHANGE_PIN")
        #expect(final == #"{"msg":"CHANGE_PIN","success":true}"#)
    }

    @Test(
        "a client that closes its writing side receives its answers, the final message and end of file",
        arguments: Moment.allCases
    )
    @Loop func halfClosed(at moment: Moment) async throws {
        let fixture = try await Fixture(at: moment)
        await fixture.client.send(#"{"cmd":"GET_API_LEVEL","request":1}"#, #"{"cmd":"GET_HEALTH","request":2}"#)
        fixture.client.finish()
        fixture.gate?.open()
        #expect(await fixture.client.next("API_LEVEL")?["request"]?.int == 1)
        #expect(await fixture.client.next("HEALTH")?["request"]?.int == 2)
        if let name = moment.workflow {
            let final = await fixture.client.next(name)
            #expect((final?["reason"] ?? final?["result"]?["reason"]) == .string("User_Cancelled"))
        }
        #expect(await fixture.client.next() == nil)
        await fixture.server.clients(0)
        #expect(!fixture.server.isLent())
    }

    @Test("the reader becomes free when a client disconnects before its question is sent")
    @Loop func goneBeforeTheQuestion() async throws {
        for _ in 0..<30 {
            let fixture = try await Fixture(at: .enterPIN)
            let gate = fixture.readers.gate { _, command in command.cla == 0x00 && command.ins == 0x86 }
            await fixture.client.send(Fixture.setPIN)
            await gate.arrival()
            // The server detects the disconnection by a failed send or by a hang-up, whichever comes first.
            gate.open()
            fixture.client.close()
            await fixture.server.clients(0)
            #expect(!fixture.server.isLent())
        }
    }

    @Test(
        "the commands that a client sent before it closed its connection are executed"
    )
    @Loop func closesAtOnce() async throws {
        let marks = MarkFeature()
        let server = try await TestServer(moreFeatures: { _ in [marks] })
        let witness = try server.connect()
        for round in 0..<20 {
            let client = try server.connect()
            // Half of the clients leave before the server has looked at them once.
            if round % 2 == 0 { _ = await client.exchange() }
            await client.send((0..<50).map { #"{"cmd":"MARK\#($0 % 10 == 5 ? "_LATER" : "")","n":\#($0)}"# })
            client.close()
            await server.clients(1)
            #expect(marks.taken == Array(0..<50), "round \(round)")
            marks.taken = []
        }
        #expect(await witness.exchange(#"{"cmd":"GET_STATUS"}"#).last == Moment.idle.status)
    }

    @Test("a client that does not read its answers and closes its connection has all its commands executed")
    @Loop func closesUnread() async throws {
        let marks = MarkFeature()
        let server = try await TestServer(moreFeatures: { _ in [marks] })
        let client = try server.connect()
        client.isReading = false
        let padding = String(repeating: "x", count: 1000)
        var sent = 0
        // Until the server takes no more, because its answers are not read.
        var idleTurns = 0
        while idleTurns < 1000 {
            var line = Array(#"{"cmd":"GET_INFO","request":"\#(padding)"}"#.utf8 + [0x0A])[...]
            while client.trySend(&line), !line.isEmpty {}
            guard line.isEmpty else { break }
            sent += 1
            idleTurns = 0
            await Task.yield()
        }
        #expect(sent > 100)
        client.close()
        await server.clients(0)
        #expect(!server.isLent())
    }

    @Test("a workflow whose client has left ends, although an answer to the client is being prepared")
    @Loop func leavesWhileWorking() async throws {
        let marks = MarkFeature()
        let server = try await TestServer(moreFeatures: { _ in [marks] })
        try await server.insert()
        let client = try server.connect()
        _ = try #require(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN"))
        marks.isOpen = false
        await client.send(#"{"cmd":"MARK_LATER","n":1}"#, #"{"cmd":"MARK","n":2}"#)
        client.close()
        let witness = try server.connect()
        while let reader = await witness.next("READER"), reader["busy"] != nil {}
        #expect(!server.isLent())
        #expect(marks.taken == [])
        marks.open()
        await server.clients(1)
        #expect(marks.taken == [1, 2])
    }

    @Test("an incomplete line at end of file is not a command")
    @Loop func halfLine() async throws {
        let fixture = try await Fixture(at: .idle)
        await fixture.client.send(bytes: Array(#"{"cmd":"GET_API_LEVEL"}"#.utf8))
        fixture.client.finish()
        #expect(await fixture.client.next() == nil)
    }

    @Test("the reader becomes free when a client starts a workflow and disconnects at once")
    @Loop func disconnectsAtOnce() async throws {
        let server = try await TestServer()
        for _ in 0..<100 {
            let client = try server.connect()
            await client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#, #"{"cmd":"SET_CARD","name":"Simulator"}"#, Fixture.setPIN)
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
        let fixture = try await Fixture(at: moment)
        let idle = try fixture.server.connect()
        _ = await idle.exchange()
        Task { @Loop in await fixture.server.server.stop() }
        fixture.gate?.open()
        if let name = moment.workflow {
            let final = await fixture.client.next(name)
            #expect((final?["reason"] ?? final?["result"]?["reason"]) == .string("User_Cancelled"))
        }
        #expect(await fixture.client.next() == nil)
        while await idle.next() != nil {}
        await fixture.server.clients(0)
        #expect(!fixture.server.isLent())
    }
}

/// Has two commands, one with an answer that is being prepared, that write down their number.
@Loop final class MarkFeature: Feature {
    var taken: [Int] = []
    /// Whether the prepared answers may end.
    var isOpen = true
    private let waiters = Waiters()

    var commands: [CommandSpec] {
        [
            CommandSpec("MARK", permission: [], mark),
            CommandSpec("MARK_LATER", permission: [], markLater),
        ]
    }

    private func mark(_ call: Call) throws(Failure) -> Reply {
        taken.append(try call.arguments.number("n", 0...Int.max))
        return .none
    }

    private func markLater(_ call: Call) async throws(Failure) -> Reply {
        let number = try call.arguments.number("n", 0...Int.max)
        await Task.yield()
        await waiters.wait { self.isOpen }
        taken.append(number)
        return .none
    }

    func open() {
        isOpen = true
        waiters.check()
    }
}
