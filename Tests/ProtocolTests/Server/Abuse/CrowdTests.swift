// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import ISO7816
import Readers
import Server
import TestSupport
import Testing
import Text

@Suite("Many clients and slow clients", .timeLimit(.minutes(5)))
struct CrowdTests {
    @Test("500 clients at once are all answered and all receive READER for a card")
    @Loop func clients() async throws {
        let server = try await TestServer(limits: .own(500))
        var clients: [TestClient] = []
        for number in 0..<500 {
            let client = try server.connect()
            await client.send(
                #"{"cmd":"GET_INFO"}"#,
                #"{"cmd":"SET_API_LEVEL","level":\#(number % 3 + 1)}"#,
                #"{"cmd":"RUN_CHANGE_PIN","reader":"none","request":\#(number)}"#,
                #"{"cmd":"GET_API_LEVEL","request":\#(number)}"#
            )
            clients.append(client)
        }
        #expect(server.server.clientCount == 500)
        for (number, client) in clients.enumerated() {
            while let answer = await client.next("API_LEVEL"), answer["request"] == nil {}
            #expect(client.transcript.last?["request"]?.int == number)
            #expect(client.transcript.last?["current"]?.int == number % 3 + 1)
        }
        try await server.insert()
        for client in clients {
            #expect(await client.next("READER") == .simulator(card: .card(tries: 3), keypad: false))
        }
        for client in clients { client.close() }
        await server.clients(0)
        let next = try server.connect()
        #expect(
            await next.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN", "INSERT_CARD")?["msg"] == .string("ENTER_PIN")
        )
    }

    @Test("with the default limits a fifth user is served although four users hold 250 connections each")
    @Loop func fifthUser() async throws {
        // Each connection has two descriptors here.
        var files = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
        files.rlim_cur = max(files.rlim_cur, min(files.rlim_max, 8192))
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
        let server = try await TestServer()
        var held: [TestClient] = []
        for uid in UInt32(1001)...1004 {
            for _ in 0..<250 { held.append(try server.connect(uid: uid)) }
            #expect(await (try server.connect(uid: uid)).next("INTERNAL_ERROR") != nil)
        }
        for client in held { _ = await client.exchange() }
        let fifth = try server.connect(uid: 1005)
        try await server.insert()
        #expect(await fifth.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN") != nil)
        #expect(server.server.clientCount == 1000)
        for client in held { client.close() }
        await server.clients(1)
    }

    @Test("50 concurrent workflows on 50 readers change 50 PINs")
    @Loop func workflows() async throws {
        let names = ["Simulator"] + (2...50).map { "Simulator \($0)" }
        let server = try await TestServer(readers: names.count, limits: .own(50))
        let dialogues = names.map { name in
            Task { @Loop in
                try await server.insert(.quick(), into: name)
                let client = try server.connect()
                let line = #"{"cmd":"RUN_CHANGE_PIN","reader":"\#(name)"}"#
                let question = await client.ask(line, "ENTER_PIN", "CHANGE_PIN_")
                #expect(question?["reader"]?["name"]?.string == name)
                _ = await client.ask(Fixture.setPIN, "ENTER_NEW_PIN")
                return await client.ask(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#, "CHANGE_PIN")
            }
        }
        for dialogue in dialogues {
            #expect(try await dialogue.value == #"{"msg":"CHANGE_PIN","success":true}"#)
        }
        #expect(names.allSatisfy { !server.isLent($0) })
    }

    @Test("the server stops reading from a client that reads late, then answers all commands in order")
    @Loop func pipeline() async throws {
        let total = FullTables.areWanted ? 100_000 : 20_000
        let fixture = try await Fixture(at: .idle)
        let client = fixture.client
        let earlier = client.count
        client.isReading = false
        var lines: [UInt8] = []
        for number in 0..<total { lines += Array("{\"cmd\":\"GET_INFO\",\"request\":\(number)}\n".utf8) }
        var rest = lines[...]
        // The server stops reading commands when its queue of answers for this client is full.
        var idleTurns = 0
        while idleTurns < 1000 {
            if client.trySend(&rest) { idleTurns = 0 } else { idleTurns += 1 }
            await Task.yield()
        }
        let taken = lines.count - rest.count
        #expect(taken < lines.count / 2)
        let witness = try fixture.server.connect()
        #expect(await witness.exchange(#"{"cmd":"GET_STATUS"}"#).last == Moment.idle.status)

        client.isReading = true
        await client.send(bytes: Array(rest))
        await client.wait { client.count >= earlier + total }
        for (number, line) in client.lines[earlier...].enumerated() {
            guard line.containsRequest(number) else {
                Issue.record("answer \(number) is \(String(decoding: line, as: UTF8.self))")
                break
            }
        }
        #expect(client.count == earlier + total)
    }

    @Test("a client that never reads is disconnected at 1 MiB of queued events; other clients receive all events")
    @Loop func neverReads() async throws {
        let readers = ScriptedReaders { (_) throws(CardError) in throw .removed }
        let server = try await TestServer(readers: 1, backends: [readers])
        let (nonReader, witness) = (try server.connect(), try server.connect())
        _ = await (nonReader.exchange(), witness.exchange())
        // A running workflow does not prevent the disconnection.
        try await server.insert()
        _ = await nonReader.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN")
        nonReader.isReading = false
        _ = await witness.exchange()
        for number in 0..<40 {
            let name = "\(number)" + String(repeating: "x", count: 65_536)
            readers.add(ReaderDescription(name: name))
            // READER of the Simulator comes in between when the workflow of the disconnected client ends.
            while let message = await witness.next("READER"), message["name"]?.string != name {
                #expect(message["name"]?.string == "Simulator")
            }
        }
        await server.clients(1)
        #expect(server.logged.contains { $0.contains("does not read and is disconnected") })
        #expect(!server.isLent())
        #expect(await witness.exchange(#"{"cmd":"GET_STATUS"}"#).last == Moment.idle.status)
    }

    @Test("superseded events are dropped for a client that does not read, and the client stays connected")
    @Loop func coalescing() async throws {
        let readers = ScriptedReaders { (_) throws(CardError) in throw .removed }
        let server = try await TestServer(readers: 0, backends: [readers])
        let (slow, witness) = (try server.connect(), try server.connect())
        _ = await (slow.exchange(), witness.exchange())
        slow.isReading = false
        let name = String(repeating: "x", count: 1000)
        readers.add(ReaderDescription(name: name))
        for number in 0..<3000 { readers.change(ReaderDescription(name: name, hasKeypad: number % 2 == 0)) }
        readers.remove(name)
        while let message = await witness.next("READER"), message["attached"] == .bool(true) {}
        slow.isReading = true
        while let message = await slow.next("READER"), message["attached"] == .bool(true) {}
        #expect(slow.count < witness.count)
        #expect(slow.transcript.last == witness.transcript.last)
        #expect(await slow.exchange(#"{"cmd":"GET_STATUS"}"#) == [Moment.idle.status])
    }
}

extension [UInt8] {
    /// Returns whether the line ends with this request; parsing all JSON texts would take too long.
    fileprivate func containsRequest(_ number: Int) -> Bool {
        let member = Array(#","request":\#(number)}"#.utf8)
        return suffix(member.count).elementsEqual(member)
    }
}
