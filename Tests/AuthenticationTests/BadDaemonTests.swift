// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedSDKWrapper
import EIDServer
import FoundationEssentials
import Glibc
import Secrets
import Synchronization
import TestSupport
import Testing
import Text
import Wire

/// Where a client stands when badged fails it.
enum ClientMoment: String, CaseIterable, Sendable {
    case idle, accessRights, insertCard, enterPIN, enterCAN, enterPUK, enterNewPIN, cardWorks, pause

    /// The card that leads there. docs/protocol.md, Virtual reader.
    fileprivate var card: JSON? {
        let text: String? =
            switch self {
            case .enterCAN: #"{"retryCounter":1}"#
            case .enterPUK: #"{"retryCounter":0}"#
            // Slow enough to be met at work.
            case .cardWorks: #"{"latencyMs":100}"#
            case .pause: slippingCard
            case .idle, .accessRights, .insertCard, .enterPIN, .enterNewPIN: nil
            }
        return text.flatMap { try? JSON($0.utf8) }
    }

    /// The callback of the wrapper that says so.
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

extension RunningDaemon {
    /// It stands still when this returns.
    fileprivate func stop() async {
        program.signal(SIGSTOP)
        await program.stops()
    }
}

/// Goes on to a moment, does what the test wants there, and never says anything again.
private final class Walker: EIDUser {
    private let badged: DaemonConnection
    private let moment: ClientMoment
    private let arrive: @Sendable () -> Void
    private let isFirstCard = Mutex(true)

    init(_ badged: DaemonConnection, to moment: ClientMoment, _ arrive: @escaping @Sendable () -> Void) {
        (self.badged, self.moment, self.arrive) = (badged, moment, arrive)
    }

    private func stand() async {
        arrive()
        let (never, continuation) = AsyncStream.makeStream(of: Void.self)
        await withTaskCancellationHandler {
            for await _ in never {}
        } onCancel: {
            continuation.finish()
        }
    }

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        switch (question.kind, moment) {
        case (.pin, .enterPIN), (.can, _), (.puk, _), (.newPIN, _): await stand()
        case (.pin, _): return SecretBox(Secret("123456".utf8))
        }
        return nil
    }

    func agree(to request: ConsentRequest) async -> [String]? {
        await stand()
        return nil
    }

    func insertCard(error: String?, reader: String?) async {
        if moment == .insertCard { return arrive() }
        let isFirst = isFirstCard.withLock { isFirst in
            defer { isFirst = false }
            return isFirst
        }
        // Afterwards it is the same card, which goes on losing itself.
        _ = try? await badged.setCard(in: "Simulator", card: isFirst ? moment.card : nil)
    }

    func repositionCard() async -> Bool {
        await stand()
        return false
    }

    func progress(_ percent: Int) async { if moment == .cardWorks { arrive() } }
}

/// A real badged that is killed or stopped, and at last a played one, for what a real one never says.
@Suite("Client libraries and a badged that fails", .timeLimit(.minutes(5)))
struct BadDaemonTests {
    // MARK: Killed

    @Test(
        "BadgedClient: killed at any moment, it is a typed error, the events end, and nothing hangs",
        arguments: ClientMoment.allCases
    )
    func killed(moment: ClientMoment) async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let badged = try await DaemonConnection.connect(to: daemon.path)
        let walker = Walker(badged, to: moment) { daemon.program.signal(SIGKILL) }
        switch moment {
        case .idle: daemon.program.signal(SIGKILL)
        case .accessRights:
            let url = try eidServer.tcTokenURL()
            await #expect(throws: ClientError.closed) {
                try await badged.authenticate(tcTokenURL: url, user: walker)
            }
        default: await #expect(throws: ClientError.closed) { try await badged.changePIN(user: walker) }
        }
        for await _ in badged.events {}
        #expect(badged.ending == .closed)
        await #expect(throws: ClientError.closed) { try await badged.info() }
        await #expect(throws: ClientError.closed) { try await badged.changePIN(user: walker) }
        _ = await daemon.program.exitCode
        // Its socket is still there; nobody listens.
        let error = await #expect(throws: ClientError.self) { try await DaemonConnection.connect(to: daemon.path) }
        #expect(error == .notRunning(path: daemon.path))
        #expect(error?.advice.isEmpty == false)
    }

    @Test(
        "the wrapper: killed at any moment, it is told with what to do, and it can start again",
        arguments: ClientMoment.allCases
    )
    func killedWrapper(moment: ClientMoment) async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let url = try #require(URL(string: try eidServer.tcTokenURL()))
        let app = WrapperApp(CardTransport(daemon.path, moment.card)) { controller, callback in
            if callback == moment.callback { return daemon.program.signal(SIGKILL) }
            switch callback {
            case "started" where moment == .accessRights: controller.startAuthentication(withTcTokenUrl: url)
            case "started": controller.startChangePin()
            case "card": controller.setCard(name: "Simulator")
            case "PIN": controller.setPin("123456")
            default: break
            }
        }
        let error = await app.until("error")
        #expect(
            error == "error WorkflowController::connection: badged has closed the connection;"
                + " see why in its log: journalctl -u badged; then connect again"
        )
        #expect(await app.until("disconnected") == "disconnected false")
        #expect(!app.controller.isStarted)
        _ = await daemon.program.exitCode
        app.controller.start()
        let next = await app.until("error")
        #expect(next?.hasPrefix("error WorkflowController::start: badged is not running") == true)
        #expect(await app.until("disconnected") == "disconnected false")
    }

    // MARK: Slow

    /// Long enough for badged to answer on a busy machine.
    private static let patience = Duration.seconds(3)

    @Test(
        "BadgedClient: badged that stands still is given up, whatever is waited for",
        arguments: ["info", "start", "card"]
    )
    func stopped(what: String) async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path, timeout: Self.patience)
        switch what {
        case "info":
            await daemon.stop()
            await #expect(throws: ClientError.noAnswer) { try await badged.info() }
        case "start":
            await daemon.stop()
            let user = EIDClosures { _ in nil }
            await #expect(throws: ClientError.noAnswer) { try await badged.changePIN(user: user) }
        default:
            // In the middle, and the answer is not heard.
            let user = Walker(badged, to: .enterNewPIN) {}
            let stopping = EIDClosures { question in
                await daemon.stop()
                return SecretBox(Secret("123456".utf8))
            } insertCard: { error, reader in
                await user.insertCard(error: error, reader: reader)
            }
            await #expect(throws: ClientError.noAnswer) { try await badged.changePIN(user: stopping) }
        }
        for await _ in badged.events {}
        #expect(badged.ending == .noAnswer)
        #expect(badged.ending?.advice.contains("systemctl status badged") == true)
        await #expect(throws: ClientError.noAnswer) { try await badged.cancel() }
    }

    @Test("BadgedClient: a task that is cancelled while badged stands still ends, too")
    func cancelledWhileStopped() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path, timeout: Self.patience)
        let (arrived, feed) = AsyncStream.makeStream(of: Void.self)
        let user = Walker(badged, to: .enterPIN) { feed.finish() }
        let task = Task { try await badged.changePIN(user: user) }
        for await _ in arrived {}
        await daemon.stop()
        task.cancel()
        await #expect(throws: ClientError.cancelled) { try await task.value }
        #expect(badged.ending == .noAnswer)
    }

    @Test("BadgedClient: badged that is slow, but lives, is waited for")
    func slow() async throws {
        let daemon = try await RunningDaemon()
        let badged = try await DaemonConnection.connect(to: daemon.path)
        await daemon.stop()
        async let info = badged.info()
        let id = try await badged.send("GET_READER_LIST")
        daemon.program.signal(SIGCONT)
        #expect(try await info.name == "badged")
        for await event in badged.events where event.answers(id) { break }
        #expect(badged.ending == nil)
    }

    @Test("the wrapper: badged that stands still is told with what to do")
    func stoppedWrapper() async throws {
        let daemon = try await RunningDaemon()
        let app = WrapperApp(DaemonTransport(path: daemon.path, timeout: Self.patience)) { _, _ in }
        _ = await app.until("started")
        await daemon.stop()
        app.controller.startChangePin()
        let error = await app.until("error")
        #expect(error?.hasPrefix("error WorkflowController::connection: badged does not answer; check badged") == true)
        #expect(await app.until("disconnected") == "disconnected false")
    }

    @Test("silence that means something is no failure: badged, asked whether it lives, says so, and nobody sees that")
    func alive() async throws {
        // A played badged: how long a real one is silent depends on people and networks.
        let peer = try ScriptedPeer(isLively: false) { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.answer("GET_API_LEVEL", #"{"available":[1,2,3],"current":3,"msg":"API_LEVEL"}"#)
            peer.send(#"{"msg":"CHANGE_PIN"}"#)
            peer.send(#"{"msg":"CHANGE_PIN","success":true}"#)
            peer.untilClosed()
        }
        let badged = try await DaemonConnection.connect(to: peer.path, timeout: Self.patience)
        let others = Others()
        #expect(try await badged.changePIN(user: others).success)
        #expect(others.names.withLock { $0 } == ["CHANGE_PIN"])
        #expect(badged.ending == nil)
        badged.close()
        #expect(await peer.commands() == ["RUN_CHANGE_PIN", "GET_API_LEVEL"])
    }

    private final class Others: EIDUser {
        let names = Mutex<[String]>([])
        func answer(_ question: SecretQuestion) async -> SecretBox? { nil }
        func other(_ event: Event) async { names.withLock { $0.append(event.name) } }
    }

    // MARK: What a real badged never says; a played one does

    static let noProtocol = [
        "HTTP/1.1 400 Bad Request\r\n", "{\"msg\":\n", "[]\n", "\"AUTH\"\n", "5\n",
        "{\"a\":" + String(repeating: "[", count: 10_000) + "\n",
        String(repeating: "x", count: LineBuffer.maximumLine + 2),
    ]

    @Test("BadgedClient: what is not the protocol ends a workflow with an error that says so", arguments: noProtocol)
    func malformed(text: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(#"{"msg":"CHANGE_PIN"}"#)
            peer.send(raw: text)
            peer.untilClosed()
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        let error = await #expect(throws: ClientError.self) { try await badged.changePIN(user: Others()) }
        guard case .malformed = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        for await _ in badged.events {}
        #expect(badged.ending == error)
        #expect(error?.advice == "check the path of the socket")
    }

    @Test("the wrapper: what is not the protocol ends the connection with an error that says so", arguments: noProtocol)
    func malformedWrapper(text: String) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(raw: text)
            peer.untilClosed()
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
        "BadgedClient: a question or an end that cannot be read is an error, and what runs is cancelled",
        arguments: [
            (#"{"msg":"ENTER_PIN"}"#, "ENTER_PIN without a usable reader", true),
            (#"{"msg":"ENTER_CAN","reader":{}}"#, "ENTER_CAN without a usable reader", true),
            (#"{"msg":"ENTER_TELEPATHY","reader":{"name":"R"}}"#, "", false),
            (#"{"msg":"ACCESS_RIGHTS","chat":5}"#, "ACCESS_RIGHTS without a usable chat", true),
            (#"{"msg":"PAUSE"}"#, "PAUSE without a usable cause", true),
            (#"{"msg":"CHANGE_PIN","success":"yes"}"#, "CHANGE_PIN without a usable success", false),
            (#"{"msg":"AUTH","result":{}}"#, "AUTH without a usable result", false),
            (#"{"msg":"READER"}"#, "", false), (#"{"msg":"TELEPATHY"}"#, "", false), ("{}", "", false),
        ]
    )
    func unreadable(message: String, cause: String, isCancelled: Bool) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(message)
            if isCancelled { peer.command("CANCEL") }
            peer.send(#"{"msg":"CHANGE_PIN","reason":"User_Cancelled","success":false}"#)
            peer.untilClosed()
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        let others = Others()
        if cause.isEmpty {
            // Nobody has to understand it: it is handed on, and the workflow goes on.
            #expect(try await badged.changePIN(user: others).success == false)
            #expect(others.names.withLock { $0.count } == 1)
        } else {
            await #expect(throws: ClientError.malformed(cause)) { try await badged.changePIN(user: others) }
        }
        badged.close()
        #expect(await peer.commands() == ["RUN_CHANGE_PIN"] + (isCancelled ? ["CANCEL"] : []))
    }

    @Test(
        "BadgedClient: a service that cannot be shown is not agreed to: the authentication is cancelled with the error"
    )
    func consentWithoutService() async throws {
        let rights =
            #"{"chat":{"effective":["Address"],"optional":[],"required":["Address"]},"msg":"ACCESS_RIGHTS"}"#
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_AUTH")
            peer.send(rights)
            peer.answer("GET_CERTIFICATE", #"{"msg":"CERTIFICATE"}"#)
            peer.command("CANCEL")
            peer.send(#"{"msg":"AUTH","result":{"major":"x#error","reason":"User_Cancelled"}}"#)
            peer.untilClosed()
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

    @Test("BadgedClient: a server that is full says so before it closes")
    func full() async throws {
        let peer = try ScriptedPeer { $0.send(#"{"error":"Cannot process request","msg":"INTERNAL_ERROR"}"#) }
        let badged = try await DaemonConnection.connect(to: peer.path)
        await #expect(throws: ClientError.refused("Cannot process request")) {
            try await badged.changePIN(user: Others())
        }
    }
}
