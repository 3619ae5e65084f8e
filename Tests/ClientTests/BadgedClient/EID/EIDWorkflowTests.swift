// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization
import TestSupport
import Testing
import Text

@testable import BadgedClient

/// Answers with the secrets of a list, and keeps a log of the questions.
private final class ScriptedUser: EIDUser {
    private let secrets: Mutex<[String]>
    private let entries = Mutex<[String]>([])
    private let connection: DaemonConnection?
    private let card: JSON?

    /// - Parameters:
    ///   - secrets: the answers in order. After the last one the workflow is cancelled.
    ///   - connection: inserts a card when one is needed; nil: no card is inserted.
    ///   - card: the card to insert; nil: the reader's own card.
    init(_ secrets: [String], over connection: DaemonConnection? = nil, card: JSON? = nil) {
        self.secrets = Mutex(secrets)
        (self.connection, self.card) = (connection, card)
    }

    var log: [String] { entries.withLock { $0 } }

    private func note(_ entry: String) { entries.withLock { $0.append(entry) } }

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        note("\(question.kind) \(question.triesLeft ?? -1)\(question.error == nil ? "" : " again")")
        return secrets.withLock { $0.isEmpty ? nil : SecretBox(Secret($0.removeFirst().utf8)) }
    }

    func insertCard(error: String?, reader: String?) async {
        note("card")
        _ = try? await connection?.setCard(in: "Simulator", card: card)
    }

    func agree(to request: ConsentRequest) async -> [String]? {
        note("\(request.service.subjectName): \(request.rights.required)")
        // The service did not ask for the second one.
        return ["Pseudonym", "Telepathy"]
    }

    func repositionCard() async -> Bool {
        note("pause")
        return true
    }

    func other(_ event: Event) async { if event.message is UnknownMessage { note(event.name) } }
}

/// A question that the test holds open.
private struct HeldQuestion {
    private let arrival = AsyncStream.makeStream(of: Void.self)

    /// Returns the answer `digits` when the task is cancelled.
    func answer(_ digits: String) async -> SecretBox? {
        arrival.continuation.finish()
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        await withTaskCancellationHandler {
            for await _ in never {}
        } onCancel: {
            continuation.finish()
        }
        return SecretBox(Secret(digits.utf8))
    }

    /// A user who inserts the virtual card and leaves the question for the PIN open.
    func user(of badged: DaemonConnection) -> EIDClosures {
        EIDClosures { _ in
            await answer("123456")
        } insertCard: { _, _ in
            _ = try? await badged.setCard(in: "Simulator")
        }
    }

    /// Waits until the question is asked.
    func isAsked() async { for await _ in arrival.stream {} }
}

private func secret(_ digits: String) -> Secret { Secret(digits.utf8) }

@Suite("Workflows with badged and its virtual card", .timeLimit(.minutes(5))) struct EIDWorkflowTests {
    private let daemon: RunningDaemon
    private let badged: DaemonConnection

    init() async throws {
        daemon = try await RunningDaemon()
        badged = try await DaemonConnection.connect(to: daemon.path)
    }

    @Test("A PIN is changed after a value of the wrong form and a wrong PIN, and the connection stays open")
    func changePIN() async throws {
        let user = ScriptedUser(["12", "111111", "123456", "654321"], over: badged)
        let result = try await badged.changePIN(user: user)
        #expect(result == ChangePINResult(success: true))
        #expect(user.log == ["card", "pin 3", "pin 3 again", "pin 2", "newPIN 3"])
        #expect(try await badged.info().name == "badged")
    }

    @Test("A task that reads the events beside a running workflow gets them, too, and the workflow goes on")
    func eventsBeside() async throws {
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let reading = Task {
            var names: [String] = []
            for await event in badged.events {
                start.finish()
                names.append(event.name)
                if (event.message as? ChangePINMessage)?.outcome != nil { break }
            }
            return names
        }
        try await badged.askForReaders()
        for await _ in started {}
        let user = ScriptedUser(["123456", "654321"], over: badged)
        #expect(try await badged.changePIN(user: user) == ChangePINResult(success: true))
        let names = await reading.value
        for name in ["READER_LIST", "INSERT_CARD", "ENTER_PIN", "ENTER_NEW_PIN", "CHANGE_PIN"] {
            #expect(names.contains(name))
        }
        #expect(user.log == ["card", "pin 3", "newPIN 3"])
    }

    @Test("A second workflow on the same connection is refused at once, and the first one goes on")
    func secondWorkflow() async throws {
        let held = HeldQuestion()
        let user = held.user(of: badged)
        let first = Task { try await badged.changePIN(user: user) }
        await held.isAsked()
        let error = await #expect(throws: ClientError.workflowRunning) {
            try await badged.changePIN(user: ScriptedUser([]))
        }
        #expect(error?.advice.contains("second connection") == true)
        first.cancel()
        let cancelled = try await first.value
        #expect(cancelled == ChangePINResult(success: false, reason: "User_Cancelled"))
        // The connection is free again.
        let next = ScriptedUser(["123456", "654321"], over: badged)
        let changed = try await badged.changePIN(user: next)
        #expect(changed.success)
    }

    @Test("A connection that keeps no events can run a workflow")
    func withoutEvents() async throws {
        let badged = try await DaemonConnection.connect(to: daemon.path, keepsEvents: false)
        let user = ScriptedUser(["123456", "654321"], over: badged)
        #expect(try await badged.changePIN(user: user).success)
    }

    @Test("Events that a workflow has not read are still there after it")
    func eventsAfter() async throws {
        try await withPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(
                #"{"msg":"CHANGE_PIN"}"# + "\n" + #"{"msg":"CHANGE_PIN","success":true}"# + "\n" + #"{"msg":"LATER"}"#
            )
            peer.answer("GET_READER_LIST", #"{"msg":"READER_LIST","readers":[]}"#)
        } body: { connection in
            #expect(try await connection.changePIN(user: ScriptedUser([])).success)
            _ = try await connection.readers()
            var events = connection.events.makeAsyncIterator()
            #expect(await events.next()?.name == "LATER")
        }
    }

    @Test("A loop over the events that does not go on ends the workflow with an error, not in a hang")
    func unreadEvents() async throws {
        try await withPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            let text = String(repeating: "x", count: 100_000)
            for _ in 0..<15 { peer.send(#"{"msg":"LONG","text":"\#(text)"}"#) }
        } body: { connection in
            let events = connection.events.makeAsyncIterator()
            await #expect(throws: ClientError.unreadEvents) {
                try await connection.changePIN(user: ScriptedUser([]))
            }
            withExtendedLifetime(events) {}
        }
    }

    @Test("Serving browsers beside a loop over the events is refused at once: the loop could take a start")
    func browsersBesideEvents() async throws {
        try await withPeer { _ in
        } body: { connection in
            let events = connection.events.makeAsyncIterator()
            await #expect(throws: ClientError.eventsAreRead) {
                try await connection.authenticateForBrowser(user: ScriptedUser([]))
            }
            withExtendedLifetime(events) {}
        }
    }

    @Test("An answer to an earlier question reaches no card, and the open question stays open")
    func lateAnswer() async throws {
        try await badged.startChangePIN()
        var questions: [SecretQuestion] = []
        var late: RequestID?
        var wasRefused = false
        loop: for await event in badged.events {
            if let late, event.answers(late) {
                wasRefused = event.message.refusal == .badState(command: "SET_PIN")
                try await badged.answer(questions[1], secret("123456"))
            }
            switch event.message {
            case is InsertCard: try await badged.setCard(in: "Simulator")
            case let question as SecretQuestion:
                questions.append(question)
                switch questions.count {
                case 1: try await badged.answer(question, secret("111111"))
                case 2: late = try await badged.answer(questions[0], secret("222222"))
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

    @Test("With one try left the card asks for the CAN first, and a user without an answer cancels")
    func suspended() async throws {
        let user = ScriptedUser(["500540"], over: badged, card: try JSON(#"{"retryCounter":1}"#.utf8))
        let result = try await badged.changePIN(user: user)
        #expect(result == ChangePINResult(success: false, reason: "User_Cancelled"))
        #expect(user.log == ["card", "can 1", "pin 1"])
    }

    @Test("Cancelling the task cancels the workflow, and a late answer is dropped")
    func cancelled() async throws {
        let held = HeldQuestion()
        let user = held.user(of: badged)
        let task = Task { try await badged.changePIN(user: user) }
        await held.isAsked()
        task.cancel()
        let result = try await task.value
        #expect(result == ChangePINResult(success: false, reason: "User_Cancelled"))
        #expect(try await badged.status() == WorkflowStatus())
    }

    @Test("A refused start is thrown")
    func refused() async throws {
        try await badged.startChangePIN()
        await #expect(throws: ClientError.badState(command: "RUN_CHANGE_PIN")) {
            try await badged.changePIN(user: ScriptedUser([]))
        }
    }

    @Test("A workflow ends when badged is killed")
    func killed() async throws {
        let user = EIDClosures { _ in
            nil
        } insertCard: { _, _ in
            daemon.program.signal(SIGKILL)
        }
        await #expect(throws: ClientError.closed) { try await badged.changePIN(user: user) }
    }
}

@Suite("Workflows with a scripted badged", .timeLimit(.minutes(5))) struct PlayedWorkflowTests {
    @Test("An authentication asks for consent once, and grants only rights that the service asked for")
    func authentication() async throws {
        let reader = #""reader":{"attached":true,"card":{},"insertable":false,"keypad":true,"name":"R"}"#
        let rights =
            #"{"chat":{"effective":["Address"],"optional":["Pseudonym"],"required":["Address"]},"msg":"ACCESS_RIGHTS"}"#
        let user = ScriptedUser([])
        let received = try await withPeer { peer in
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
        } body: { badged in
            let result = try await badged.authenticate(tcTokenURL: "https://shop.example/token", user: user)
            #expect(result.isSuccess)
            #expect(result.url == "https://shop.example/")
        }
        #expect(user.log == ["TELEPATHY", #"Shop: ["Address"]"#, "pause"])
        let commands = received.compactMap { try? JSON($0.utf8) }
        #expect(commands.first?["tcTokenURL"] == .string("https://shop.example/token"))
        let choice = commands.first { $0["cmd"] == .string("SET_ACCESS_RIGHTS") }
        #expect(choice?["chat"] == .array([.string("Pseudonym")]))
        // The reader has a keypad, so the command has no digits.
        #expect(commands.first { $0["cmd"] == .string("SET_PIN") }?["value"] == nil)
    }

    @Test("When the card leaves during a question, the digits for it are not sent to the next card")
    func voidQuestion() async throws {
        let reader = #""reader":{"attached":true,"card":{},"insertable":false,"keypad":false,"name":"R"}"#
        let held = HeldQuestion()
        let user = EIDClosures { question in
            question.kind == .pin ? await held.answer("123456") : SecretBox(secret("500540"))
        }
        let received = try await withPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send("{\"msg\":\"ENTER_PIN\",\(reader)}")
            peer.command("GET_INFO")
            peer.send(#"{"msg":"INSERT_CARD"}"#)
            peer.send("{\"msg\":\"ENTER_CAN\",\(reader)}")
            peer.command("SET_CAN")
            peer.send(#"{"msg":"CHANGE_PIN","success":false,"reason":"User_Cancelled"}"#)
        } body: { badged in
            async let result = badged.changePIN(user: user)
            await held.isAsked()
            try await badged.send("GET_INFO")
            _ = try await result
        }
        let commands = received.compactMap { (try? JSON($0.utf8))?["cmd"]?.string }
        #expect(commands == ["RUN_CHANGE_PIN", "GET_INFO", "SET_CAN"])
    }

    @Test("The cancellation of a workflow that is over sends nothing: it would reach the next one")
    func lateCancellation() async throws {
        let received = try await withPeer { _ in
        } body: { badged in
            let workflow = Workflow(badged, ScriptedUser([]))
            workflow.end()
            await workflow.cancel()
        }
        #expect(received == [])
    }

    private static let unread = #"{"error":"illegal value (offset: 1)","msg":"INVALID"}"#

    @Test("A start that badged could not read is refused")
    func unreadStart() async throws {
        try await withPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(Self.unread)
        } body: { badged in
            await #expect(throws: ClientError.refused("illegal value (offset: 1)")) {
                try await badged.changePIN(user: ScriptedUser([]))
            }
        }
    }

    @Test("A line that badged could not read before the start, or after it, ends no workflow")
    func unreadLine() async throws {
        let (heard, hear) = AsyncStream.makeStream(of: Void.self)
        let peer = try ScriptedPeer { peer in
            peer.send(Self.unread)
            peer.send(#"{"msg":"LATER"}"#)
            peer.command("RUN_CHANGE_PIN")
            peer.send(#"{"msg":"CHANGE_PIN"}"#)
            peer.send(Self.unread)
            peer.send(#"{"msg":"CHANGE_PIN","success":true}"#)
        }
        let badged = try await DaemonConnection.connect(to: peer.path) { if $0.name == "LATER" { hear.finish() } }
        for await _ in heard {}
        #expect(try await badged.changePIN(user: ScriptedUser([])) == ChangePINResult(success: true))
    }
}
