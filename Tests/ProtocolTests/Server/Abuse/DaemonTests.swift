// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Server
import TestSupport
import Testing
import Text

/// Tests of the real program. They run one at a time because they measure memory.
@Suite("The daemon under abuse", .timeLimit(.minutes(5)), .serialized)
struct DaemonTests {
    private static func configuration(readers: Int = 1, clients: Int = 1000) -> String {
        "[server]\nmax_clients=\(clients)\n[virtual]\nreaders=\(readers)\n"
    }

    private static func reader(_ number: Int) -> String { number == 1 ? "Simulator" : "Simulator \(number)" }

    @Loop private static func setCard(_ number: Int, _ card: String = "{}") -> String {
        #"{"cmd":"SET_CARD","name":"\#(reader(number))","card":\#(card)}"#
    }

    @Test("SIGTERM ends every running workflow with its final message, then the process exits")
    @Loop func termination() async throws {
        let daemon = try await DaemonProcess(configuration: Self.configuration(readers: 4))
        var clients: [TestClient] = []
        for number in 1...4 {
            let client = try daemon.connect()
            _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(Self.reader(number))"}"#, "INSERT_CARD")
            switch number % 4 {
            case 1: break
            case 2: _ = await client.ask(Self.setCard(number), "ENTER_PIN")
            case 3: _ = await client.ask(Self.setCard(number, #"{"retryCounter":1}"#), "ENTER_CAN")
            default:
                _ = await client.ask(Self.setCard(number), "ENTER_PIN")
                _ = await client.ask(Fixture.setPIN, "ENTER_NEW_PIN")
            }
            clients.append(client)
        }
        daemon.signal(SIGTERM)
        #expect(await daemon.exitCode() == 0)
        for client in clients {
            let final = await client.next("CHANGE_PIN")
            #expect(final == #"{"msg":"CHANGE_PIN","reason":"User_Cancelled","success":false}"#)
            #expect(await client.next() == nil)
        }
        #expect(access(daemon.socketPath, F_OK) != 0)
    }

    @Test("SIGTERM ends the workflow and the process while a slow card works on a command")
    @Loop func slowCard() async throws {
        let daemon = try await DaemonProcess()
        let client = try daemon.connect()
        _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        _ = await client.exchange(Self.setCard(1, #"{"latencyMs":60000}"#))
        daemon.signal(SIGTERM)
        #expect(await daemon.exitCode() == 0)
        #expect(await client.next("CHANGE_PIN")?["reason"] == .string("User_Cancelled"))
    }

    @Test(
        "after a workflow with a slow virtual card an idle daemon does not wake up",
        .disabled(if: Spawn.isSanitized, "the thread sanitizer wakes up by itself")
    )
    @Loop func idle() async throws {
        let daemon = try await DaemonProcess()
        let client = try daemon.connect()
        _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        _ = try #require(await client.ask(Self.setCard(1, #"{"latencyMs":1}"#), "ENTER_PIN"))
        _ = try #require(await client.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN"))
        let wakeUps = try await Threads.wakeUps { Threads.of(daemon.pid).list }
        #expect(wakeUps.isEmpty, "\(wakeUps)")
    }

    @Test(
        "a client that disconnects at any question leaves no secret in the daemon's memory",
        .enabled(if: DaemonProcess.canReadMemory)
    )
    @Loop func secrets() async throws {
        let daemon = try await DaemonProcess()
        // Six digits, too many digits with escapes, and five digits; each line is sent in two writes.
        let typed: [(card: String, [String], secrets: [String])] = [
            ("{}", [#"{"cmd":"SET_PIN","value":"918273"}"#], ["918273"]),
            ("{}", [#"{"cmd":"SET_PIN","value":"\u0037\u0038192736"}"#], ["78192736", "78192"]),
            ("{}", [#"{"cmd":"SET_PIN","value":"82730"}"#], ["82730"]),
            (#"{"retryCounter":1}"#, [#"{"cmd":"SET_CAN","value":"736455"}"#], ["736455"]),
            (#"{"retryCounter":0}"#, [#"{"cmd":"SET_PUK","value":"5647382910"}"#], ["5647382910"]),
            ("{}", [Fixture.setPIN, #"{"cmd":"SET_NEW_PIN","value":"135798"}"#], []),
        ]
        let witness = try daemon.connect()
        _ = await witness.exchange()
        for (card, lines, _) in typed {
            let client = try daemon.connect()
            _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
            _ = try #require(await client.ask(Self.setCard(1, card), "ENTER_PIN", "ENTER_CAN", "ENTER_PUK"))
            for line in lines {
                let middle = line.utf8.count - 5
                await client.send(bytes: Array(line.utf8.prefix(middle)))
                _ = await client.send(bytes: Array(line.utf8.dropFirst(middle)) + [0x0A])
                _ = await client.next("ENTER_PIN", "ENTER_CAN", "ENTER_PUK", "ENTER_NEW_PIN", "CHANGE_PIN")
            }
            client.close()
            // The workflow has ended when its card is out of the reader.
            while let reader = await witness.next("READER"), reader["busy"] != nil || reader["card"] != .null {}
        }
        // A PIN without a workflow, and a PIN in a line that is never completed.
        let last = try daemon.connect()
        _ = await last.exchange(#"{"cmd":"SET_PIN","value":"246801"}"#)
        await last.send(bytes: Array(#"{"cmd":"SET_PIN","value":"864209""#.utf8))
        last.close()
        _ = await witness.exchange(#"{"cmd":"GET_STATUS"}"#)
        await daemon.wait { $0.disconnections == typed.count + 1 }
        for secret in typed.flatMap(\.secrets) + ["246801", "864209"] {
            #expect(try daemon.occurrences(of: Array(secret.utf8)) == 0, "\(secret)")
            #expect(!daemon.log.contains { $0.contains(secret) })
        }
        // The search finds a text that is known to be in memory.
        #expect(try daemon.occurrences(of: Array("GET_STATUS".utf8)) > 0)
    }

    @Test(
        "a second round of abuse leaves no more memory in use than the first",
        .disabled(if: Spawn.isSanitized, "a sanitizer keeps freed memory")
    )
    @Loop func memory() async throws {
        // glibc keeps freed blocks, up to 17 MiB here. With this setting, blocks of 32 KiB and more are returned to the
        // kernel as soon as they are free. So the anonymous memory is the memory in use.
        let daemon = try await DaemonProcess(environment: ["GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=32768"])
        let witness = try daemon.connect()
        _ = await witness.exchange(#"{"cmd":"GET_INFO"}"#, #"{"cmd":"GET_HEALTH"}"#, #"{"cmd":"RUN_CHANGE_PIN"}"#)
        // A line of the maximum length, a line that is too long, and an incomplete line.
        let lines =
            Array(repeating: UInt8(ascii: "x"), count: 1 << 20) + [0x0A]
            + Array(repeating: UInt8(ascii: "y"), count: 1 << 20 + 9) + [0x0A]
            + Array(repeating: UInt8(ascii: "["), count: 1 << 20)
        let count = 30
        var most = 0
        func abuse() async throws -> Int {
            var clients: [TestClient] = []
            for _ in 1...count {
                let client = try daemon.connect()
                await client.send(bytes: lines)
                clients.append(client)
            }
            for client in clients { _ = await (client.next("INVALID"), client.next("INVALID")) }
            most = max(most, daemon.anonymousMemory)
            let gone = daemon.disconnections + count
            for client in clients { client.close() }
            await daemon.wait { $0.disconnections >= gone }
            #expect(await witness.exchange(#"{"cmd":"GET_STATUS"}"#).last == Moment.insertCard.status)
            return daemon.anonymousMemory
        }
        // Allocations of the first clients, such as tables, are not counted.
        let (first, second, third) = (try await abuse(), try await abuse(), try await abuse())
        print(
            "memory: at most \(most >> 10) KiB; KiB after each round of abuse: \([first, second, third].map { $0 >> 10 })"
        )
        // The smallest buffer of a connection is 4 KiB: a leak of one for each client is twice the limit.
        // A thread that begins in one of the rounds has memory of its own.
        #expect(min(second - first, third - second) < count * 2048)
        #expect(daemon.end == nil)
    }

    @Test("without free descriptors, new clients are refused with an error and connected clients continue")
    @Loop func descriptors() async throws {
        let daemon = try await DaemonProcess(openFiles: 64)
        var served: [TestClient] = []
        for _ in 1...200 {
            let client = try daemon.connect()
            let first = await client.ask(#"{"cmd":"GET_STATUS"}"#, "STATUS", "INTERNAL_ERROR")
            if first == Moment.idle.status {
                served.append(client)
            } else {
                #expect(first == #"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#)
            }
        }
        #expect(!served.isEmpty && served.count < 64)
        #expect(daemon.log.contains { $0.contains("no descriptors are left") })
        // Connected clients can run a workflow, and each disconnection admits one new client.
        let client = served.removeLast()
        _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        _ = await client.ask(Self.setCard(1), "ENTER_PIN")
        _ = await client.ask(Fixture.setPIN, "ENTER_NEW_PIN")
        let final = await client.ask(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#, "CHANGE_PIN")
        #expect(final == #"{"msg":"CHANGE_PIN","success":true}"#)
        for left in served {
            let gone = daemon.disconnections
            left.close()
            await daemon.wait { $0.disconnections > gone }
            let next = try daemon.connect()
            #expect(await next.exchange(#"{"cmd":"GET_STATUS"}"#).last == Moment.idle.status)
        }
        #expect(daemon.end == nil)
    }

    @Test("a client beyond max_clients of the configuration is refused with an error")
    @Loop func maximumClients() async throws {
        let daemon = try await DaemonProcess(configuration: Self.configuration(clients: geteuid() == 0 ? 3 : 12))
        let clients = try (1...3).map { _ in try daemon.connect() }
        for client in clients { _ = await client.exchange(#"{"cmd":"GET_STATUS"}"#) }
        let refused = try daemon.connect()
        #expect(await refused.next() == #"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#)
        #expect(await refused.next() == nil)
        clients[1].close()
        await daemon.wait { $0.disconnections == 1 }
        let next = try daemon.connect()
        #expect(await next.exchange(#"{"cmd":"GET_STATUS"}"#).last == Moment.idle.status)
        #expect(daemon.end == nil)
    }
}
