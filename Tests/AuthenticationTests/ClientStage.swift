// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedSDKWrapper
import Dispatch
import EIDServer
import FoundationEssentials
import Secrets
import Synchronization
import TestSupport
import Text
import Wire

extension RunningDaemon {
    /// The program with the trust of `eidServer`.
    static func trusting(_ eidServer: EIDServer) async throws -> RunningDaemon {
        let folder = "/tmp/badged-test-trust-\(UInt32.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: folder + "/anchors/test", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let root = Data(eidServer.authority.root)
        try root.write(to: URL(filePath: folder + "/anchors/test/cvca.cvcert"))
        try root.write(to: URL(filePath: folder + "/cvca.cvcert"))
        let configuration = "[eid]\ntrust_anchors=\(folder)/anchors\n[virtual]\ncvca=\(folder)/cvca.cvcert\n"
        try Data(configuration.utf8).write(to: URL(filePath: folder + "/badged.conf"))
        return try await RunningDaemon(["--config", folder + "/badged.conf"])
    }
}

/// An app of the AusweisApp SDK Wrapper, written from its documentation alone: what it is told is a line of text, and
/// what it does about it is the test's.
final class WrapperApp: WorkflowCallbacks, Sendable {
    let controller: WorkflowController
    private let react: @Sendable (WorkflowController, String) -> Void
    private let lines = Mutex<[String]>([])
    private let told: AsyncStream<String>
    private let feed: AsyncStream<String>.Continuation

    init(
        _ transport: any SDKConnection,
        _ react: @escaping @Sendable (_ controller: WorkflowController, _ callback: String) -> Void
    ) {
        controller = WorkflowController(transport: transport, callbackQueue: DispatchQueue(label: "callbacks"))
        (told, feed) = AsyncStream.makeStream(of: String.self)
        self.react = react
        controller.registerCallbacks(self)
        controller.start()
    }

    /// All callbacks so far.
    var all: [String] { lines.withLock { $0 } }

    /// Waits for a callback that begins so.
    func until(_ start: String) async -> String? {
        for await line in told where line.hasPrefix(start) { return line }
        return nil
    }

    private func tell(_ line: String) {
        lines.withLock { $0.append(line) }
        feed.yield(line)
        react(controller, line)
    }

    func onStarted() { tell("started") }
    func onAuthenticationStarted() { tell("authentication") }
    func onAuthenticationStartFailed(error: String) { tell("failed \(error)") }
    func onAccessRights(error: String?, accessRights: BadgedSDKWrapper.AccessRights?) { tell("rights") }
    func onCertificate(certificateDescription: BadgedSDKWrapper.CertificateDescription) { tell("certificate") }
    func onInsertCard(error: String?) { tell("card") }
    func onEnterPin(error: String?, reader: BadgedSDKWrapper.Reader) { tell("PIN") }
    func onEnterNewPin(error: String?, reader: BadgedSDKWrapper.Reader) { tell("new PIN") }
    func onEnterCan(error: String?, reader: BadgedSDKWrapper.Reader) { tell("CAN") }
    func onEnterPuk(error: String?, reader: BadgedSDKWrapper.Reader) { tell("PUK") }
    func onPause(cause: Cause) { tell("pause") }
    func onInfo(versionInfo: VersionInfo) { tell("info \(versionInfo.name)") }
    func onReader(reader: BadgedSDKWrapper.Reader?) { tell("reader \(reader?.name ?? "nil")") }
    func onReaderDetached(name: String) { tell("detached \(name)") }
    func onBadState(error: String) { tell("bad state \(error)") }
    func onInternalError(error: String) { tell("internal error \(error)") }
    func onReaderList(readers: [BadgedSDKWrapper.Reader]?) { tell("readers \(readers?.map(\.name) ?? [])") }
    func onStatus(workflowProgress: WorkflowProgress) { tell("status") }
    func onOtherMessage(name: String, message: JSON) { tell("\(name) \(message["current"]?.int ?? 0)") }
    func onChangePinStarted() { tell("change") }
    func onChangePinCompleted(changePinResult: BadgedSDKWrapper.ChangePinResult) {
        tell("changed \(changePinResult.success)")
    }
    func onAuthenticationCompleted(authResult: BadgedSDKWrapper.AuthResult) {
        tell("authenticated \(!authResult.hasError) \(authResult.url?.query()?.contains("ResultMajor=ok") ?? false)")
    }
    func onWrapperError(error: WrapperError) { tell("error \(error.msg): \(error.error)") }
    func onDisconnected(error: WrapperError?) { tell("disconnected \(error == nil)") }
}

/// badged's socket with a `card` in the next SET_CARD, for which the wrapper has no parameter.
final class CardTransport: SDKConnection {
    private let base: DaemonTransport
    private let card: Mutex<JSON?>

    init(_ path: String, _ card: JSON? = nil) {
        base = DaemonTransport(path: path)
        self.card = Mutex(card)
    }

    func next(_ card: String) { self.card.withLock { $0 = try? JSON(card.utf8) } }

    func start(_ receive: @escaping @Sendable (SDKEvent) -> Void) { base.start(receive) }
    func stop() { base.stop() }

    func send(_ command: SDKCommand) {
        guard command.name == "SET_CARD", let card = card.withLock({ $0.take() }) else { return base.send(command) }
        base.send(SDKCommand(command.name, command.members + [.init("card", card)]))
    }
}

/// `card` of SET_CARD for one that ten runs of PACE lose, after which badged pauses: seven commands identify it, three open
/// it, then PACE begins.
let slippingCard =
    #"{"faults":[\#(Array(repeating: #"{"afterApdu":11,"do":"remove"}"#, count: 10).joined(separator: ","))]}"#
