// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedSDKWrapper
import EIDServer
import FoundationEssentials
import Server
import Synchronization
import TestSupport
import Testing
import Text

@Suite("Callbacks of the AusweisApp SDK Wrapper", .timeLimit(.minutes(5)))
struct WrapperTests {
    @Test("the program badged causes each callback of the documentation")
    func everyCallback() async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let transport = CardTransport(daemon.path)
        let app = WrapperApp(transport) { _, _ in }
        let controller = app.controller
        /// Waits for callbacks, then does the next thing.
        func expect(_ callbacks: String..., then next: (WorkflowController) -> Void) async {
            for callback in callbacks { #expect(await app.until(callback) == callback) }
            next(controller)
        }
        await expect("started") { $0.getInfo() }
        await expect("info badged") { $0.getReaderList() }
        await expect(#"readers ["Simulator"]"#) { $0.getReader(name: "Simulator") }
        await expect("reader Simulator") { $0.getReader(name: "nowhere") }
        await expect("reader nil", "detached nowhere") { $0.getStatus() }
        await expect("status") { $0.setPin("123456") }
        let nonsense = try #require(URL(string: "nonsense"))
        await expect("bad state SET_PIN") { $0.startAuthentication(withTcTokenUrl: nonsense) }
        await expect("failed Validation of tcTokenURL failed") { $0.interrupt() }
        let url = try #require(URL(string: try eidServer.tcTokenURL()))
        await expect("error UNKNOWN_COMMAND: INTERRUPT") {
            $0.startAuthentication(withTcTokenUrl: url, withUserInfoMessages: AA2UserInfoMessages(sessionStarted: "x"))
        }

        await expect("authentication", "rights") { $0.getAccessRights() }
        await expect("rights") { $0.setAccessRights([]) }
        await expect("rights") { $0.getCertificate() }
        await expect("certificate") { $0.accept() }
        transport.setNext(card: #"{"retryCounter":1}"#)
        await expect("card") { $0.setCard(name: "Simulator") }
        await expect("CAN") { $0.setCan("500540") }
        await expect("PIN") { $0.setPin("123456") }
        await expect("authenticated true true") { $0.startChangePin() }
        #expect(eidServer.report()?["outcome"] == .string("ok"))

        transport.setNext(card: #"{"retryCounter":0}"#)
        await expect("change", "card") { $0.setCard(name: "Simulator") }
        await expect("PUK") { $0.setPuk("9876543210") }
        await expect("PIN") { $0.setPin("123456") }
        await expect("new PIN") { $0.setNewPin("654321") }
        await expect("changed true") { $0.startChangePin(withStatusMsgEnabled: false) }

        transport.setNext(card: slippingCard)
        // The tenth loss is a pause, and on a slow machine an earlier one.
        var losses = 0
        var next = await app.until("card", "pause")
        while next == "card" {
            losses += 1
            controller.setCard(name: "Simulator")
            await expect("PIN") { $0.setPin("123456") }
            next = await app.until("card", "pause")
        }
        #expect(next == "pause" && (2...10).contains(losses), "\(losses)")
        controller.continueWorkflow()
        await expect("card") { $0.cancel() }
        await expect("changed false") { $0.stop() }
        await expect("disconnected true") { _ in }
    }

    @Test("a PIN that is sent before the application gets the next question uses no try")
    func crossingPIN() async throws {
        let daemon = try await RunningDaemon()
        let transport = HoldingTransport(daemon.path)
        let app = WrapperApp(transport) { controller, callback in
            if callback == "started" { controller.startChangePin() }
            if callback == "card" { controller.setCard(name: "Simulator") }
        }
        _ = await app.until("PIN")
        app.controller.setPin("111111")
        // badged asks again; the transport holds the question back.
        for await _ in transport.held {}
        app.controller.setPin("222222")
        #expect(await app.until("bad state") == "bad state SET_PIN")
        transport.release()
        // After another wrong try badged would ask for the CAN.
        #expect(await app.until("PIN") == "PIN")
        app.controller.setPin("123456")
        #expect(await app.until("new PIN") == "new PIN")
    }

    /// badged's socket. The second question is held back until `release`.
    private final class HoldingTransport: SDKConnection {
        private let base: DaemonTransport
        /// Ends when the second question has arrived.
        let held: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation
        private let question = Mutex<(@Sendable () -> Void)?>(nil)

        init(_ path: String) {
            base = DaemonTransport(path: path)
            (held, continuation) = AsyncStream.makeStream(of: Void.self)
        }

        func start(_ receive: @escaping @Sendable (SDKEvent) -> Void) {
            base.start { [self] event in
                guard case .message(let message) = event, message["question"]?.int == 2 else { return receive(event) }
                question.withLock { $0 = { receive(event) } }
                continuation.finish()
            }
        }

        func stop() { base.stop() }
        func send(_ command: SDKCommand) { base.send(command) }
        func release() { question.withLock { $0.take() }?() }
    }

    @Test("a client that badged has no place for gets an error")
    func full() async throws {
        let daemon = try await RunningDaemon(configuration: "[server]\nmax_clients = 1\n")
        let first = WrapperApp(DaemonTransport(path: daemon.path)) { _, _ in }
        _ = await first.until("started")
        let second = WrapperApp(DaemonTransport(path: daemon.path)) { _, _ in }
        #expect(await second.until("internal error") == "internal error Cannot process request")
        #expect(await second.until("disconnected") == "disconnected false")
        first.controller.stop()
    }
}
