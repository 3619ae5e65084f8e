// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Secrets
import Synchronization
import TestSupport
import Testing
import Text
import Wire

/// Answers from a list, and keeps what it was asked.
private final class ScriptedUser: WorkflowUser {
    private let secrets: Mutex<[String]>
    private let log = Mutex<[String]>([])
    private let connection: DaemonConnection?
    private let card: JSON?

    /// - Parameters:
    ///   - secrets: digits in the order in which they are asked for; after the last one the workflow is cancelled.
    ///   - connection: puts a card in when one is needed.
    ///   - card: what that card is like; nil: the one on the shelf.
    init(_ secrets: [String], over connection: DaemonConnection? = nil, card: JSON? = nil) {
        self.secrets = Mutex(secrets)
        (self.connection, self.card) = (connection, card)
    }

    var asked: [String] { log.withLock { $0 } }

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        log.withLock {
            $0.append("\(question.kind) \(question.triesLeft ?? -1)\(question.error == nil ? "" : " again")")
        }
        return secrets.withLock { $0.isEmpty ? nil : SecretBox(Secret($0.removeFirst().utf8)) }
    }

    func insertCard(error: String?, reader: String?) async {
        log.withLock { $0.append("card") }
        _ = try? await connection?.setCard(in: "Simulator", card: card)
    }

    func agree(to request: ConsentRequest) async -> [String]? {
        log.withLock { $0.append("\(request.service.subjectName): \(request.rights.required)") }
        // Nothing that was not offered goes out.
        return ["Pseudonym", "Telepathy"]
    }

    func layCardBetter() async -> Bool {
        log.withLock { $0.append("pause") }
        return true
    }

    func other(_ event: Event) async {
        if case .unknown(let name) = event.message { log.withLock { $0.append(name) } }
    }
}

/// Never answers, and says when it was asked.
private struct SilentUser: WorkflowUser {
    let onQuestion: @Sendable () -> Void

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        onQuestion()
        return await untilCancelled()
    }

    private func untilCancelled() async -> SecretBox? {
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        await withTaskCancellationHandler {
            for await _ in never {}
        } onCancel: {
            continuation.finish()
        }
        return SecretBox(Secret("123456".utf8))
    }
}

@Suite("Whole workflows", .timeLimit(.minutes(5))) struct WorkflowTests {
    @Test("a PIN is changed on the virtual card of a real badged, after one that the card found wrong")
    func changePIN() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path)
        let user = ScriptedUser(["12", "111111", "123456", "654321"], over: badged)
        let result = try await badged.changePIN(user: user)
        #expect(result == ChangePINResult(success: true))
        #expect(user.asked == ["card", "pin 3", "pin 3 again", "pin 2", "newPIN 3"])
        // The connection serves on.
        #expect(try await badged.info().name == "badged")
    }

    @Test("an answer to a question that is over reaches no card: the next one stands")
    func lateAnswer() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path)
        try await badged.startChangePIN()
        var questions: [SecretQuestion] = []
        var refusal: RequestID?
        var wasRefused = false
        loop: for await event in badged.events {
            if let refusal, event.answers(refusal) {
                wasRefused = event.message == .badState(command: "SET_PIN")
                try await badged.answer(questions[1], Secret("123456".utf8))
            }
            switch event.message {
            case .insertCard: try await badged.setCard(in: "Simulator")
            case .enter(let question):
                questions.append(question)
                switch questions.count {
                case 1: try await badged.answer(question, Secret("111111".utf8))
                case 2: refusal = try await badged.answer(questions[0], Secret("222222".utf8))
                default: break loop
                }
            default: continue
            }
        }
        #expect(wasRefused)
        #expect(questions.map(\.kind) == [.pin, .pin, .newPIN])
        #expect(questions.map(\.triesLeft) == [3, 2, 3])
        #expect(questions.map(\.number) == [1, 2, 3])
    }

    @Test("with one try left the CAN comes first; no answer cancels")
    func suspended() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path)
        let card = try JSON(#"{"retryCounter":1}"#.utf8)
        let user = ScriptedUser(["500540"], over: badged, card: card)
        let result = try await badged.changePIN(user: user)
        #expect(result == ChangePINResult(success: false, reason: "User_Cancelled"))
        #expect(user.asked == ["card", "can 1", "pin 1"])
    }

    @Test("a cancelled task cancels the workflow, and a late answer goes nowhere")
    func cancelled() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path)
        let (asked, continuation) = AsyncStream.makeStream(of: Void.self)
        let closures = WorkflowClosures { question in
            await SilentUser { continuation.finish() }.answer(question)
        } insertCard: { _, _ in
            _ = try? await badged.setCard(in: "Simulator")
        }
        let task = Task { try await badged.changePIN(user: closures) }
        for await _ in asked {}
        task.cancel()
        #expect(try await task.value == ChangePINResult(success: false, reason: "User_Cancelled"))
        #expect(try await badged.status() == WorkflowStatus())
    }

    @Test("a refusal is thrown as what it is")
    func refused() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path)
        try await badged.startChangePIN()
        await #expect(throws: ClientError.badState(command: "RUN_CHANGE_PIN")) {
            try await badged.changePIN(user: ScriptedUser([]))
        }
    }

    @Test("a badged that is killed in the middle ends the call")
    func killed() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path)
        let user = WorkflowClosures { _ in
            nil
        } insertCard: { _, _ in
            daemon.program.signal(SIGKILL)
        }
        await #expect(throws: ClientError.closed) { try await badged.changePIN(user: user) }
    }

    @Test("an authentication asks for consent once with the service's name, and grants nothing that was not offered")
    func authentication() async throws {
        let reader = #""reader":{"attached":true,"card":{},"insertable":false,"keypad":true,"name":"R"}"#
        let rights =
            #"{"chat":{"effective":["Address"],"optional":["Pseudonym"],"required":["Address"]},"msg":"ACCESS_RIGHTS"}"#
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_AUTH")
            peer.send(#"{"msg":"AUTH"}"#)
            peer.send(#"{"msg":"TELEPATHY"}"#)
            peer.send(rights)
            peer.answer("GET_CERTIFICATE", #"{"description":{"subjectName":"Shop"},"msg":"CERTIFICATE","validity":{}}"#)
            peer.answer("SET_ACCESS_RIGHTS", rights)
            peer.command("ACCEPT")
            peer.send("{\"msg\":\"ENTER_PIN\",\(reader)}")
            peer.command("SET_PIN")
            peer.send(#"{"cause":"BadCardPosition","msg":"PAUSE"}"#)
            peer.command("CONTINUE")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#ok"},"url":"https://shop.example/"}"#)
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        let user = ScriptedUser([])
        let result = try await badged.authenticate(tcTokenURL: "https://shop.example/token", user: user)
        #expect(result.isSuccess)
        #expect(result.url == "https://shop.example/")
        #expect(user.asked == ["TELEPATHY", #"Shop: ["Address"]"#, "pause"])
        let lines = await peer.received().compactMap { try? JSON($0.utf8) }
        #expect(lines.first?["tcTokenURL"] == .string("https://shop.example/token"))
        #expect(lines.first { $0["cmd"] == .string("SET_ACCESS_RIGHTS") }?["chat"] == .array([.string("Pseudonym")]))
        // A keypad takes the digits itself.
        #expect(lines.first { $0["cmd"] == .string("SET_PIN") }?["value"] == nil)
    }

    @Test("a card that leaves makes the question void: its digits never go to the next card")
    func voidQuestion() async throws {
        let reader = #""reader":{"attached":true,"card":{},"insertable":false,"keypad":false,"name":"R"}"#
        let (left, continuation) = AsyncStream.makeStream(of: Void.self)
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send("{\"msg\":\"ENTER_PIN\",\(reader)}")
            peer.command("GET_INFO")
            peer.send(#"{"msg":"INSERT_CARD"}"#)
            peer.send("{\"msg\":\"ENTER_CAN\",\(reader)}")
            peer.command("SET_CAN")
            peer.send(#"{"msg":"CHANGE_PIN","success":false,"reason":"User_Cancelled"}"#)
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        let user = WorkflowClosures { question in
            guard question.kind == .pin else { return SecretBox(Secret("500540".utf8)) }
            return await SilentUser { continuation.finish() }.answer(question)
        }
        async let result = badged.changePIN(user: user)
        for await _ in left {}
        try await badged.send("GET_INFO")
        _ = try await result
        let sent = await peer.commands()
        #expect(sent == ["RUN_CHANGE_PIN", "GET_INFO", "SET_CAN"])
    }
}

@Suite("Connections, one after the other", .timeLimit(.minutes(5))) struct ConnectionsTests {
    @Test("the next connection comes when the last has ended")
    func reconnect() async throws {
        let peer = try ScriptedPeer({ _ in }, others: { peer in peer.untilClosed() })
        var iterator = DaemonConnection.connections(to: peer.path).makeAsyncIterator()
        let first = try #require(try await iterator.next())
        for await _ in first.events {}
        #expect(first.ending == .closed)
        let second = try #require(try await iterator.next())
        #expect(second.ending == nil)
    }

    @Test("it gives up after so many failures, and at once where trying again cannot help")
    func limit() async throws {
        let retry = RetryPolicy(limit: 3, firstPause: .milliseconds(1))
        await #expect(throws: ClientError.notRunning(path: "/nowhere/b.sock")) {
            for try await _ in DaemonConnection.connections(to: "/nowhere/b.sock", retry: retry) {}
        }
        await #expect(throws: ClientError.invalidPath("")) {
            for try await _ in DaemonConnection.connections(to: "") {}
        }
    }

    @Test("a cancelled task ends the sequence while it waits")
    func cancelled() async throws {
        let task = Task {
            for try await _ in DaemonConnection.connections(to: "/nowhere/b.sock") {}
            return "ended"
        }
        task.cancel()
        #expect(try await task.value == "ended")
    }
}
