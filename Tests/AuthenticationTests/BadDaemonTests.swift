// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedSDKWrapper
import Dispatch
import EIDServer
import FoundationEssentials
import Glibc
import Server
import Synchronization
import TestSupport
import Testing
import Text

/// What a client waits for when badged fails.
enum ClientState: String, CaseIterable, Sendable {
    case idle, accessRights, insertCard, enterPIN, enterCAN, enterPUK, enterNewPIN, cardWorks, pause

    /// The card that leads to this state. docs/protocol/readers.md.
    fileprivate var card: JSON? {
        let text: String? =
            switch self {
            case .enterCAN: #"{"retryCounter":1}"#
            case .enterPUK: #"{"retryCounter":0}"#
            // So slow that the client sees it work.
            case .cardWorks: #"{"latencyMs":100}"#
            case .pause: slippingCard
            case .idle, .accessRights, .insertCard, .enterPIN, .enterNewPIN: nil
            }
        return text.flatMap { try? JSON($0.utf8) }
    }

    /// The callback of the wrapper for this state.
    fileprivate var callback: String {
        switch self {
        case .idle: "started"
        case .accessRights: "rights"
        case .insertCard: "card"
        case .enterPIN: "PIN"
        case .enterCAN: "CAN"
        case .enterPUK: "PUK"
        case .enterNewPIN: "new PIN"
        case .cardWorks: "status"
        case .pause: "pause"
        }
    }
}

/// Goes on to a state, calls `arrive`, and answers nothing from then on.
private final class SilentUser: EIDUser {
    private let badged: DaemonConnection
    private let state: ClientState
    private let arrive: @Sendable () -> Void
    private let isFirstCard = Mutex(true)

    init(_ badged: DaemonConnection, in state: ClientState, _ arrive: @escaping @Sendable () -> Void) {
        (self.badged, self.state, self.arrive) = (badged, state, arrive)
    }

    /// Waits until the task is cancelled.
    private func stay() async {
        arrive()
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        await withTaskCancellationHandler {
            for await _ in never {}
        } onCancel: {
            continuation.finish()
        }
    }

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        switch (question.kind, state) {
        case (.pin, let state) where state != .enterPIN: return SecretBox(Secret("123456".utf8))
        default: await stay()
        }
        return nil
    }

    func agree(to request: ConsentRequest) async -> [String]? {
        await stay()
        return nil
    }

    func insertCard(error: String?, reader: String?) async {
        if state == .insertCard { return arrive() }
        let isFirst = isFirstCard.withLock { isFirst in
            defer { isFirst = false }
            return isFirst
        }
        // Afterwards the same card is inserted, which is lost again and again.
        _ = try? await badged.setCard(in: "Simulator", card: isFirst ? state.card : nil)
    }

    func repositionCard() async -> Bool {
        await stay()
        return false
    }

    func progress(_ percent: Int) async { if state == .cardWorks { arrive() } }
}

/// A program badged that is killed or stopped. A scripted peer sends what the program never sends.
@Suite("Client libraries and a badged that fails", .timeLimit(.minutes(5)))
struct BadDaemonTests {
    // MARK: Killed

    @Test(
        "BadgedClient: a killed badged is an error in every state, and the events end",
        arguments: ClientState.allCases
    )
    func killed(state: ClientState) async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let badged = try await DaemonConnection.connect(to: daemon.path)
        let user = SilentUser(badged, in: state) { daemon.program.signal(SIGKILL) }
        switch state {
        case .idle: daemon.program.signal(SIGKILL)
        case .accessRights:
            let url = try eidServer.tcTokenURL()
            await #expect(throws: ClientError.closed) {
                try await badged.authenticate(tcTokenURL: url, user: user)
            }
        default: await #expect(throws: ClientError.closed) { try await badged.changePIN(user: user) }
        }
        for await _ in badged.events {}
        #expect(badged.ending == .closed)
        await #expect(throws: ClientError.closed) { try await badged.info() }
        await #expect(throws: ClientError.closed) { try await badged.changePIN(user: user) }
        _ = await daemon.program.exitCode
        // The socket still exists, and nothing listens.
        let error = await #expect(throws: ClientError.self) { try await DaemonConnection.connect(to: daemon.path) }
        #expect(error == .notRunning(path: daemon.path))
        #expect(error?.advice.isEmpty == false)
    }

    /// The wrapper learns from BadgedClient that badged has gone, so some states are enough.
    private static let wrapperStates: [ClientState] =
        FullTables.areWanted ? ClientState.allCases : [.idle, .accessRights, .enterNewPIN, .cardWorks, .pause]

    @Test(
        "the wrapper: a killed badged is an error with advice in every state, and it can start again",
        arguments: wrapperStates
    )
    func killedWrapper(state: ClientState) async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let url = try #require(URL(string: try eidServer.tcTokenURL()))
        let app = WrapperApp(CardTransport(daemon.path, state.card)) { controller, callback in
            if callback == state.callback { return daemon.program.signal(SIGKILL) }
            switch callback {
            case "started" where state == .accessRights: controller.startAuthentication(withTcTokenUrl: url)
            case "started": controller.startChangePin()
            case "card": controller.setCard(name: "Simulator")
            case "PIN": controller.setPin("123456")
            default: break
            }
        }
        let error = await app.until("error")
        #expect(
            error == "error WorkflowController::connection: badged has closed the connection;"
                + " connect again; root and group adm can see why: journalctl -u badged"
        )
        #expect(await app.until("disconnected") == "disconnected false")
        #expect(!app.controller.isStarted)
        _ = await daemon.program.exitCode
        app.controller.start()
        let next = await app.until("error")
        #expect(next?.hasPrefix("error WorkflowController::start: badged is not running") == true)
        #expect(await app.until("disconnected") == "disconnected false")
    }

    // MARK: Stopped

    /// What a client waits for. The times of a dialogue count, too, so the row with a card needs a long timeout.
    enum Request: CaseIterable {
        case info, start, card

        static var wanted: [Request] { FullTables.areWanted ? allCases : [.info, .start] }

        var timeout: Duration { self == .card ? .seconds(30) : .seconds(1) }
    }

    @Test("BadgedClient: a badged that does not answer is an error for every request", arguments: Request.wanted)
    func stopped(request: Request) async throws {
        let daemon = try await RunningDaemon()
        if request != .card { await daemon.freeze() }
        let badged = try await DaemonConnection.connect(to: daemon.path, timeout: request.timeout)
        switch request {
        case .info: await #expect(throws: ClientError.noAnswer) { try await badged.info() }
        case .start:
            let user = EIDClosures { _ in nil }
            await #expect(throws: ClientError.noAnswer) { try await badged.changePIN(user: user) }
        case .card:
            let user = SilentUser(badged, in: .enterNewPIN) {}
            let freezing = EIDClosures { question in
                await daemon.freeze()
                return SecretBox(Secret("123456".utf8))
            } insertCard: { error, reader in
                await user.insertCard(error: error, reader: reader)
            }
            await #expect(throws: ClientError.noAnswer) { try await badged.changePIN(user: freezing) }
        }
        for await _ in badged.events {}
        #expect(badged.ending == .noAnswer)
        #expect(badged.ending?.advice.contains("systemctl status badged") == true)
        await #expect(throws: ClientError.noAnswer) { try await badged.cancel() }
    }

    @Test("the wrapper: a badged that does not answer is an error with advice")
    func stoppedWrapper() async throws {
        let daemon = try await RunningDaemon()
        await daemon.freeze()
        let app = WrapperApp(DaemonTransport(path: daemon.path, timeout: .seconds(1))) { controller, callback in
            if callback == "started" { controller.startChangePin() }
        }
        let error = await app.until("error")
        #expect(error?.hasPrefix("error WorkflowController::connection: badged does not answer; check badged") == true)
        #expect(await app.until("disconnected") == "disconnected false")
    }

    @Test("BadgedClient: an answer within the timeout is accepted, however late it is")
    func slow() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path, timeout: .seconds(600))
        await daemon.freeze()
        async let info = badged.info()
        let id = try await badged.send("GET_READER_LIST")
        daemon.program.signal(SIGCONT)
        #expect(try await info.name == "badged")
        for await event in badged.events where event.answers(id) { break }
        #expect(badged.ending == nil)
    }

    /// The timeout of the tests in which badged has to answer first, and then does not. They take that long.
    private static let longTimeout = Duration.seconds(30)

    @Test("BadgedClient: cancelling a task ends it although badged does not answer", .enabled(if: FullTables.areWanted))
    func cancelledWhileStopped() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path, timeout: Self.longTimeout)
        let (arrived, continuation) = AsyncStream.makeStream(of: Void.self)
        let user = SilentUser(badged, in: .enterPIN) { continuation.finish() }
        let task = Task { try await badged.changePIN(user: user) }
        for await _ in arrived {}
        await daemon.freeze()
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        #expect(badged.ending == .noAnswer)
    }

    @Test(
        "BadgedClient: badged answers the ping after a long silence, and the answer is no event",
        .enabled(if: FullTables.areWanted)
    )
    func ping() async throws {
        let peer = try ScriptedPeer(answersPings: false) { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.answer("GET_API_LEVEL", #"{"available":[1,2,3],"current":3,"msg":"API_LEVEL"}"#)
            peer.send(#"{"msg":"CHANGE_PIN"}"#)
            peer.send(#"{"msg":"CHANGE_PIN","success":true}"#)
        }
        let badged = try await DaemonConnection.connect(to: peer.path, timeout: Self.longTimeout)
        let user = ObservingUser()
        #expect(try await badged.changePIN(user: user).success)
        #expect(user.names.withLock { $0 } == ["CHANGE_PIN"])
        #expect(badged.ending == nil)
        badged.close()
        #expect(await peer.commands() == ["RUN_CHANGE_PIN", "GET_API_LEVEL"])
    }

    @Test("BadgedClient: a daemon that sends messages without end, and no answer, ends the connection")
    func talkative() async throws {
        let isOver = DispatchSemaphore(value: 0)
        let peer = try ScriptedPeer(answersPings: false) { peer in
            peer.command("GET_INFO")
            while isOver.wait(timeout: .now()) == .timedOut {
                peer.send(#"{"attached":true,"card":null,"insertable":false,"keypad":false,"msg":"READER","name":"R"}"#)
            }
        }
        defer { isOver.signal() }
        let badged = try await DaemonConnection.connect(to: peer.path, keepsEvents: false, timeout: .seconds(1))
        await #expect(throws: ClientError.noAnswer) { try await badged.info() }
    }

    @Test("BadgedClient: no ping is sent inside a line that the application sends in parts")
    func pingInsideLine() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("GET_INFO", #"{"VersionInfo":{},"msg":"INFO"}"#)
        }
        let timeout = Duration.seconds(1)
        let badged = try await DaemonConnection.connect(to: peer.path, keepsEvents: true, timeout: timeout)
        try await badged.send(raw: Secret(#"{"cmd":"GET_"#.utf8))
        // Meanwhile a connection with the same timeout has sent its ping, and has ended because nothing answers it.
        let silentPeer = try ScriptedPeer(answersPings: false) { _ in }
        let other = try await DaemonConnection.connect(to: silentPeer.path, keepsEvents: true, timeout: timeout)
        await #expect(throws: ClientError.noAnswer) { try await other.info() }
        #expect(await silentPeer.commands() == ["GET_INFO", "GET_API_LEVEL"])
        try await badged.send(raw: Secret("INFO\"}\n".utf8))
        for await event in badged.events where event.name == "INFO" { break }
        badged.close()
        #expect(await peer.received().first == #"{"cmd":"GET_INFO"}"#)
    }

    /// Collects the names of the messages that no other method gets.
    private final class ObservingUser: EIDUser {
        let names = Mutex<[String]>([])
        func answer(_ question: SecretQuestion) async -> SecretBox? { nil }
        func other(_ event: Event) async { names.withLock { $0.append(event.name) } }
    }

    // MARK: Messages that the program badged never sends

    static let noProtocol = [
        "HTTP/1.1 400 Bad Request\r\n", "{\"msg\":\n", "[]\n", "\"AUTH\"\n", "5\n",
        "{\"a\":" + String(repeating: "[", count: 10_000) + "\n",
        String(repeating: "x", count: LineBuffer.maximumLine + 2),
    ]

    @Test("BadgedClient: a line outside the protocol ends the workflow with an error", arguments: noProtocol)
    func malformed(text: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(#"{"msg":"CHANGE_PIN"}"#)
            peer.send(raw: text)
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        let error = await #expect(throws: ClientError.self) { try await badged.changePIN(user: ObservingUser()) }
        guard case .malformed = error else { throw Unexpected("\(String(describing: error))") }
        for await _ in badged.events {}
        #expect(badged.ending == error)
        #expect(error?.advice == "check the path of the socket")
    }

    @Test("the wrapper: a line outside the protocol ends the connection with an error", arguments: noProtocol)
    func malformedWrapper(text: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(raw: text)
        }
        let app = WrapperApp(DaemonTransport(path: peer.path)) { controller, callback in
            if callback == "started" { controller.startChangePin() }
        }
        let error = await app.until("error")
        let start = "error WorkflowController::connection: the program at this socket does not speak badged's protocol"
        #expect(error?.hasPrefix(start) == true)
        #expect(await app.until("disconnected") == "disconnected false")
    }

    @Test(
        "BadgedClient: an unreadable question or result is an error, and the workflow is cancelled",
        arguments: [
            (#"{"msg":"ENTER_PIN"}"#, MalformedLine.unusable(member: "reader", of: "ENTER_PIN"), true),
            (#"{"msg":"ENTER_CAN","reader":{}}"#, .unusable(member: "reader", of: "ENTER_CAN"), true),
            (#"{"msg":"ENTER_TELEPATHY","reader":{"name":"R"}}"#, nil, false),
            (#"{"msg":"ACCESS_RIGHTS","chat":5}"#, .unusable(member: "chat", of: "ACCESS_RIGHTS"), true),
            (#"{"msg":"PAUSE"}"#, .unusable(member: "cause", of: "PAUSE"), true),
            (#"{"msg":"CHANGE_PIN","success":"yes"}"#, .unusable(member: "success", of: "CHANGE_PIN"), false),
            (#"{"msg":"AUTH","result":{}}"#, .unusable(member: "result", of: "AUTH"), false),
            (#"{"msg":"READER"}"#, nil, false), (#"{"msg":"TELEPATHY"}"#, nil, false), ("{}", nil, false),
        ]
    )
    func unreadable(message: String, cause: MalformedLine?, isCancelled: Bool) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(message)
            if isCancelled { peer.command("CANCEL") }
            peer.send(#"{"msg":"CHANGE_PIN","reason":"User_Cancelled","success":false}"#)
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        let user = ObservingUser()
        if let cause {
            await #expect(throws: ClientError.malformed(cause)) { try await badged.changePIN(user: user) }
        } else {
            // The user gets the unknown message, and the workflow continues.
            #expect(try await badged.changePIN(user: user).success == false)
            #expect(user.names.withLock { $0.count } == 1)
        }
        badged.close()
        #expect(await peer.commands() == ["RUN_CHANGE_PIN"] + (isCancelled ? ["CANCEL"] : []))
    }

    @Test("BadgedClient: an authentication whose service cannot be shown is cancelled without asking the user")
    func consentWithoutService() async throws {
        let rights =
            #"{"chat":{"effective":["Address"],"optional":[],"required":["Address"]},"msg":"ACCESS_RIGHTS"}"#
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_AUTH")
            peer.send(rights)
            peer.answer("GET_CERTIFICATE", #"{"msg":"CERTIFICATE"}"#)
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        let user = EIDClosures { _ in
            nil
        } consent: { request in
            Issue.record("asked to agree to \(request)")
            return []
        }
        await #expect(throws: ClientError.unexpectedAnswer("CERTIFICATE")) {
            try await badged.authenticate(tcTokenURL: "https://a.example", user: user)
        }
        badged.close()
        #expect(await peer.commands() == ["RUN_AUTH", "GET_CERTIFICATE", "CANCEL"])
    }

    @Test("BadgedClient: a daemon that says such an error and stays is believed, too")
    func fullAndOpen() async throws {
        let peer = try ScriptedPeer { peer in
            peer.send(#"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#)
            peer.untilClosed()
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        await #expect(throws: ClientError.refused("Cannot process request")) {
            try await badged.changePIN(user: ObservingUser())
        }
        badged.close()
    }

    @Test("BadgedClient: the error of a daemon that has no place for the client is reported")
    func full() async throws {
        let peer = try ScriptedPeer { peer in
            peer.send(#"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#)
            peer.hangUp()
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        await #expect(throws: ClientError.notServed("Cannot process request")) {
            try await badged.changePIN(user: ObservingUser())
        }
    }
}
