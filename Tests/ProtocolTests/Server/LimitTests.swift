// SPDX-License-Identifier: GPL-3.0-or-later
import CTestSupport
import Concurrency
import Glibc
import Host
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@testable import Server

@Suite("Limits for clients", .timeLimit(.minutes(5)))
@Loop struct LimitTests {
    private static func limits(_ change: (inout ServerLimits) -> Void) -> ServerLimits {
        var limits = ServerLimits()
        change(&limits)
        return limits
    }

    @Test(
        "a workflow beyond max_workflows is refused with the reason, and runs when another one has ended",
        arguments: [
            (#"{"cmd":"RUN_AUTH","tcTokenURL":"https://dienst.example/t"}"#, "AUTH"),
            (#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN"),
        ]
    )
    func workflows(command: String, answer: String) async throws {
        let server = try await TestServer(limits: Self.limits { $0.workflows = 2 })
        let running = [try server.connect(uid: 1001), try server.connect(uid: 1002)]
        for client in running { _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") }
        let third = try server.connect(uid: 1003)
        let refused = await third.ask(command, answer)
        #expect(
            refused?["error"]?.string
                == "Too many workflows are running (max_workflows = 2): try again when one has ended"
        )
        #expect(await third.answer(to: #"{"cmd":"GET_STATUS"}"#)?["workflow"] == .null)
        #expect(server.logged.contains { $0.contains("workflow refused") })
        _ = await running[0].ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN")
        let begun = await third.ask(command, answer)
        #expect(begun != nil && begun?["error"] == nil)
    }

    @Test("of clients that connect at once, root's is served before the second one of another user")
    func order() async throws {
        let server = try await TestServer(readers: 0)
        var clients: [Int32] = []
        for (uid, count) in [(1001, 5), (1002, 3), (0, 2)] as [(UInt32, Int)] {
            for _ in 0..<count {
                let (client, socket) = try UnixSocket.pair()
                clients.append(client)
                _ = fcntl(socket, F_SETFL, O_NONBLOCK)
                server.server.arrive(socket, Peer(pid: 1, uid: uid, gid: uid, groups: []))
            }
        }
        // Nothing was done for them so far.
        #expect(server.server.clientCount == 0)
        server.server.serveArrivals()
        await server.clients(10)
        let connected = server.logged.filter { $0.hasSuffix(" connected") }
        let users = connected.compactMap { $0.split(separator: "uid ").last?.prefix { $0 != ")" } }
        #expect(users == ["0", "1001", "1002", "0", "1001", "1002", "1001", "1002", "1001", "1001"])
        for client in clients { close(client) }
        await server.clients(0)
    }

    @Test("clients that have left before they are served take no place")
    func gone() async throws {
        let server = try await TestServer(readers: 0, limits: .own(2))
        let path = try server.listen()
        // Nothing is accepted before this task waits. The queue of the socket has room for them.
        for _ in 0..<8 { close(try UnixSocket.connect(to: path)) }
        let last = try UnixSocket.connect(to: path)
        let line = Array((#"{"cmd":"GET_INFO"}"# + "\n").utf8)
        #expect(BlockingSocket.send(line, to: last))
        let answer = await withCheckedContinuation { continuation in
            _ = startThread("client") { continuation.resume(returning: BlockingSocket.receive(12, from: last)) }
        }
        #expect(answer.map { String(decoding: $0, as: UTF8.self) } == #"{"msg":"INFO"#)
        #expect(!server.logged.contains { $0.contains("refused") })
        close(last)
        await server.stopListening()
    }

    @Test("one user cannot take all workflows, and each workflow has one open prompt at most")
    func workflowsOfUser() async throws {
        let server = try await TestServer(limits: Self.limits { $0.workflowsPerUser = 1 })
        let (first, second, other) = (
            try server.connect(uid: 1001), try server.connect(uid: 1001), try server.connect(uid: 1002)
        )
        _ = await first.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        let refused = await second.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN")
        #expect(
            refused?["error"]?.string
                == "Too many workflows of this user are running (max_workflows_per_user = 1): try again when one has ended"
        )
        #expect(await other.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") != nil)
        #expect(await first.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "BAD_STATE") != nil)
        // A client that has left has no workflow.
        first.close()
        await server.clients(2)
        #expect(await second.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") != nil)
    }

    @Test("a browser beyond the limit of workflows receives Busy")
    func browsers() async throws {
        let server = try await TestServer(limits: Self.limits { $0.workflows = 1 })
        let (agent, client, browser) = (try server.connect(), try server.connect(), try server.connect())
        _ = await agent.ask(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")
        _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        let answer = await browser.ask(#"{"cmd":"ACTIVATE","tcTokenURL":"https://a.example/t"}"#, "ACTIVATION")
        #expect(answer?["error"] == .string("Busy"))
    }

    @Test("one user cannot take all connections, also not through the browser port")
    func clientsOfUser() async throws {
        let server = try await TestServer(limits: Self.limits { $0.clientsPerUser = 2 })
        let own = [try server.connect(uid: 1001), try server.connect(uid: 1001)]
        for client in own { _ = await client.exchange() }
        let refused = try server.connect(uid: 1001)
        #expect(await refused.next() == #"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#)
        #expect(await refused.next() == nil)
        #expect(server.logged.contains { $0.contains("uid 1001 was refused") && $0.contains("max_clients_per_user") })
        let other = try server.connect(uid: 1002)
        #expect(await other.answer(to: #"{"cmd":"GET_STATUS"}"#) != nil)
        own[0].close()
        await server.clients(2)
        #expect(await (try server.connect(uid: 1001)).answer(to: #"{"cmd":"GET_STATUS"}"#) != nil)
    }

    @Test("a fifth user gets the place of the oldest idle client of the user who has most, never of one that is busy")
    func fifthUser() async throws {
        let server = try await TestServer(limits: Self.limits { ($0.clients, $0.workflows) = (12, 12) })
        // Three of each of four users, all places.
        var held: [TestClient] = []
        for uid in UInt32(1001)...1004 {
            for _ in 0..<3 {
                let client = try server.connect(uid: uid)
                _ = await client.exchange()
                held.append(client)
            }
        }
        // The first client of each user is busy, and the second one was used last.
        for index in stride(from: 0, to: 12, by: 3) {
            #expect(await held[index].ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") != nil)
            _ = await held[index + 1].exchange()
        }
        let fifth = try (0..<2).map { _ in try server.connect(uid: 1005) }
        for client in fifth { #expect(await client.answer(to: #"{"cmd":"GET_STATUS"}"#) != nil) }
        // Then nobody has two more than the next client would have.
        #expect(await (try server.connect(uid: 1005)).next("INTERNAL_ERROR") != nil)
        #expect(await (try server.connect(uid: 1001)).next("INTERNAL_ERROR") != nil)
        let lost = server.logged.filter { $0.contains("is disconnected: idle, and uid 1005 needs its place") }
        #expect(lost.count == 2)
        for index in 0..<12 where index % 3 < 2 {
            #expect(await held[index].answer(to: #"{"cmd":"GET_STATUS"}"#) != nil, "client \(index)")
        }
    }

    @Test("no user has more than a quarter of the clients and of the workflows, whatever its own limit is")
    func quarter() async throws {
        let server = try await TestServer(
            limits: Self.limits { ($0.clients, $0.clientsPerUser, $0.workflows, $0.workflowsPerUser) = (16, 16, 8, 8) }
        )
        for uid in [1001, 1002, nil] as [UInt32?] {
            let own = try (1...4).map { _ in try server.connect(uid: uid) }
            for client in own { _ = await client.exchange() }
            let refused = try server.connect(uid: uid)
            #expect(await refused.next("INTERNAL_ERROR") != nil)
            for client in own.prefix(2) {
                #expect(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") != nil)
            }
            let error = await own[2].ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "CHANGE_PIN")?["error"]?.string
            #expect(error?.contains("max_workflows_per_user = 2") == true)
        }
    }

    @Test("root gets connections and workflows when the other users have taken all")
    func root() async throws {
        let server = try await TestServer(limits: Self.limits { ($0.clients, $0.workflows) = (4, 4) })
        let others = try (1001...1004).map { try server.connect(uid: $0) }
        for client in others { #expect(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") != nil) }
        #expect(await (try server.connect(uid: 1005)).next("INTERNAL_ERROR") != nil)
        let root = try server.connect(uid: 0)
        #expect(await root.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD") != nil)
        // Root does not count for the others.
        #expect(server.server.clientCount == 5)
        for client in others { client.close() }
    }

    @Test("answers that one user does not read take 64 MiB at most")
    func bytesOfAnswers() async throws {
        let server = try await TestServer()
        let padding = String(repeating: "x", count: (1 << 20) - 100)
        var clients: [TestClient] = []
        for _ in 0..<100 {
            let client = try server.connect(uid: 1001)
            client.isReading = false
            await client.send(#"{"cmd":"GET_STATUS","request":"\#(padding)"}"#)
            clients.append(client)
            #expect(server.server.holdings.bytes(of: 1001) <= Holdings.maximumPerUser)
        }
        let other = try server.connect(uid: 1002)
        #expect(await other.ask(#"{"cmd":"GET_STATUS","request":"\#(padding)"}"#, "STATUS") != nil)
        #expect(server.server.holdings.bytes(of: 1001) <= Holdings.maximumPerUser)
    }

    @Test("a client without any permission sends short lines only, and its connection goes on")
    func withoutPermission() async throws {
        let server = try await TestServer()
        let client = try server.connect(uid: 1001, [])
        await client.send(
            #"{"cmd":"RUN_AUTH","x":"\#(String(repeating: "x", count: 900_000))"}"#,
            #"{"cmd":"RUN_AUTH"}"#
        )
        #expect(
            await client.next("INVALID")?["error"]?.string
                == "line too long (more than 4096 bytes: [access] gives this client no permission)"
        )
        #expect(await client.next("ACCESS_DENIED") != nil)
        #expect(server.server.holdings.bytes(of: 1001) < 100_000)
        #expect(await client.exchange(#"{"cmd":"GET_STATUS"}"#) == [Moment.idle.status])
    }

    @Test("many clients of one user that send without end do not delay the command of another user")
    func fairness() async throws {
        let marks = MarkFeature()
        let server = try await TestServer(moreFeatures: { _ in [marks] })
        let line = #"{"cmd":"MARK","n":1}"#
        let flood = try (0..<100).map { _ in try server.connect(uid: 1001) }
        for client in flood { await client.send(Array(repeating: line, count: 300)) }
        // All of this is already in the socket buffers.
        let other = try server.connect(uid: 1002)
        _ = await other.exchange(#"{"cmd":"MARK","n":2}"#)
        let before = marks.taken.firstIndex(of: 2) ?? .max
        #expect(before < 15_000, "\(before) commands came first")
        for client in flood { _ = await client.exchange() }
        #expect(marks.taken.count == 30_001)
    }

    @Test("the log has a limited number of lines about each user, and says how many were left out")
    func log() async throws {
        let server = try await TestServer(limits: Self.limits { $0.clientsPerUser = 1 })
        let own = try server.connect(uid: 1001)
        for _ in 0..<300 { _ = try server.connect(uid: 1001) }
        #expect(server.notices.count { $0.contains("uid 1001") } == 100)
        // Another user has lines of its own.
        let other = [try server.connect(uid: 1002), try server.connect(uid: 1002)]
        #expect(server.notices.last?.contains("uid 1002 was refused") == true)
        server.server.logLimit.reportNow()
        #expect(server.notices.last == "200 log lines about clients of uid 1001 were left out")
        _ = try server.connect(uid: 1001)
        #expect(server.notices.last?.contains("uid 1001 was refused") == true)
        for client in other + [own] { client.close() }
    }

    @Test(
        "all groups of a client count, as many as the kernel allows",
        .enabled(if: geteuid() == 0),
        arguments: [
            0, 1, 64, 65, 256, 257, 1024, 65_536,
        ]
    )
    func groups(count: Int) throws {
        var pair: [Int32] = [-1, -1]
        try #require(ctestsupport_pair_in_groups(&pair, Int32(count)) == 0)
        defer { for socket in pair { close(socket) } }
        #expect(try Peer(socket: pair[0]).groups == (0..<count).map { UInt32(100_000 + $0) })
    }

    @Test("a client whose groups cannot be read is refused")
    func unreadableGroups() async throws {
        let server = try await TestServer()
        // The kernel reports no user for this kind of socket.
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #expect(throws: SystemError.self) { try Peer(socket: socket) }
        server.server.serve(socket)
        #expect(server.server.clientCount == 0)
        #expect(server.logged.contains { $0.contains("its user and its groups cannot be read") })
    }

    @Test(
        "a prompt without an answer ends the workflow with a reason of its own, and the reader is free",
        arguments: [(3, "ENTER_PIN"), (1, "ENTER_CAN"), (0, "ENTER_PUK")]
    )
    func promptTimeout(tries: Int, prompt: String) async throws {
        let server = try await TestServer(limits: Self.limits { $0.promptTimeout = .zero })
        try await server.insert(.card { $0.retryCounter = tries })
        let client = try server.connect()
        #expect(await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, prompt) != nil)
        let final = await client.next("CHANGE_PIN")
        #expect(final == #"{"msg":"CHANGE_PIN","reason":"Prompt_Timeout","success":false}"#)
        #expect(!server.isLent())
    }

    @Test("a consent without an answer ends the authentication, and the service gets the error")
    func consentTimeout() async throws {
        let server = try await TestServer(limits: Self.limits { $0.promptTimeout = .zero })
        let client = try server.connect()
        #expect(await client.ask(Fixture.runAuth, "ACCESS_RIGHTS") != nil)
        let result = await client.next("AUTH")?["result"]
        #expect(result?["reason"] == .string("Prompt_Timeout"))
        #expect(result?["minor"]?.string?.hasSuffix("/ifdl/common#timeoutError") == true)
        #expect(result?["message"] == .string("The user did not answer in time."))
    }

    @Test("a wrong value does not extend the time of a prompt")
    func wrongValues() async throws {
        let server = try await TestServer(limits: Self.limits { $0.promptTimeout = .milliseconds(300) })
        try await server.insert()
        let client = try server.connect()
        var message = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN")
        // The client would go on for ever if each wrong value began a new time.
        while message?["msg"]?.string == "ENTER_PIN" {
            message = await client.ask(#"{"cmd":"SET_PIN","value":"1"}"#, "ENTER_PIN", "CHANGE_PIN", "BAD_STATE")
        }
        if message?["msg"]?.string == "BAD_STATE" { message = await client.next("CHANGE_PIN") }
        #expect(message?["reason"] == .string("Prompt_Timeout") || client.hasReceived("Prompt_Timeout"))
    }
}
