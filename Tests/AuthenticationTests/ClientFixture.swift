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

extension RunningDaemon {
    /// Starts the program with the trust anchor of `eidServer`, and with a browser port if one is given.
    static func trusting(_ eidServer: EIDServer, browserPort: UInt16? = nil) async throws -> RunningDaemon {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.path + "/test", withIntermediateDirectories: false)
        try folder.write("test/cvca.cvcert", eidServer.authority.root)
        var configuration = "[eid]\ntrust_anchors=\(folder.path)\n[virtual]\ncvca=\(folder.path)/test/cvca.cvcert\n"
        guard let browserPort else { return try await RunningDaemon(configuration: configuration, in: folder) }
        configuration += "[activation]\nenabled=yes\nport=\(browserPort)\n[log]\nlevel=info\n"
        let daemon = try await RunningDaemon(configuration: configuration, in: folder)
        // The port may be opened after the start.
        #expect(await daemon.program.prints("browsers are served at port", on: .error))
        return daemon
    }

    /// Starts the program with this text as its configuration file.
    convenience init(
        configuration: String,
        in folder: TemporaryFolder? = nil,
        environment: [String: String] = [:]
    ) async throws {
        let path = "/tmp/badged-test-\(UInt32.random(in: .min ... .max)).conf"
        try Data(configuration.utf8).write(to: URL(filePath: path))
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await self.init(["--config", path], in: folder, environment: environment)
    }

    /// Stops the process with SIGSTOP and returns when it is stopped.
    func freeze() async {
        program.signal(SIGSTOP)
        await program.stops()
    }
}

/// An application of the AusweisApp SDK Wrapper, written from the wrapper's documentation. Each callback becomes a line of
/// text; `react` says what the application does then.
final class WrapperApp: WorkflowCallbacks, Sendable {
    let controller: WorkflowController
    private let react: @Sendable (WorkflowController, String) -> Void
    private let recorded = Mutex<[String]>([])
    private let (callbacks, continuation) = AsyncStream.makeStream(of: String.self)

    init(
        _ transport: any SDKConnection,
        _ react: @escaping @Sendable (_ controller: WorkflowController, _ callback: String) -> Void
    ) {
        controller = WorkflowController(transport: transport, callbackQueue: DispatchQueue(label: "callbacks"))
        self.react = react
        controller.registerCallbacks(self)
        controller.start()
    }

    /// All callbacks so far.
    var all: [String] { recorded.withLock { $0 } }

    /// Waits for the next callback with one of these prefixes.
    func until(_ prefixes: String...) async -> String? {
        for await callback in callbacks where prefixes.contains(where: callback.hasPrefix) { return callback }
        return nil
    }

    private func record(_ callback: String) {
        recorded.withLock { $0.append(callback) }
        continuation.yield(callback)
        react(controller, callback)
    }

    func onStarted() { record("started") }
    func onAuthenticationStarted() { record("authentication") }
    func onAuthenticationStartFailed(error: String) { record("failed \(error)") }
    func onAccessRights(error: String?, accessRights: BadgedSDKWrapper.AccessRights?) { record("rights") }
    func onCertificate(certificateDescription: BadgedSDKWrapper.CertificateDescription) { record("certificate") }
    func onInsertCard(error: String?) { record("card") }
    func onEnterPin(error: String?, reader: BadgedSDKWrapper.Reader) { record("PIN") }
    func onEnterNewPin(error: String?, reader: BadgedSDKWrapper.Reader) { record("new PIN") }
    func onEnterCan(error: String?, reader: BadgedSDKWrapper.Reader) { record("CAN") }
    func onEnterPuk(error: String?, reader: BadgedSDKWrapper.Reader) { record("PUK") }
    func onPause(cause: Cause) { record("pause") }
    func onInfo(versionInfo: VersionInfo) { record("info \(versionInfo.name)") }
    func onReader(reader: BadgedSDKWrapper.Reader?) { record("reader \(reader?.name ?? "nil")") }
    func onReaderDetached(name: String) { record("detached \(name)") }
    func onBadState(error: String) { record("bad state \(error)") }
    func onInternalError(error: String) { record("internal error \(error)") }
    func onReaderList(readers: [BadgedSDKWrapper.Reader]?) { record("readers \(readers?.map(\.name) ?? [])") }
    func onStatus(workflowProgress: WorkflowProgress) { record("status") }
    func onOtherMessage(name: String, message: JSON) { record("\(name) \(message["current"]?.int ?? 0)") }
    func onChangePinStarted() { record("change") }
    func onChangePinCompleted(changePinResult: BadgedSDKWrapper.ChangePinResult) {
        record("changed \(changePinResult.success)")
    }
    func onAuthenticationCompleted(authResult: BadgedSDKWrapper.AuthResult) {
        record("authenticated \(!authResult.hasError) \(authResult.url?.query()?.contains("ResultMajor=ok") ?? false)")
    }
    func onWrapperError(error: WrapperError) { record("error \(error.msg): \(error.error)") }
    func onDisconnected(error: WrapperError?) { record("disconnected \(error == nil)") }
}

/// badged's socket, with `card` in the next SET_CARD. The wrapper has no parameter for it.
final class CardTransport: SDKConnection {
    private let base: DaemonTransport
    private let card: Mutex<JSON?>

    init(_ path: String, _ card: JSON? = nil) {
        base = DaemonTransport(path: path)
        self.card = Mutex(card)
    }

    func setNext(card: String) { self.card.withLock { $0 = try? JSON(card.utf8) } }

    func start(_ receive: @escaping @Sendable (SDKEvent) -> Void) { base.start(receive) }
    func stop() { base.stop() }

    func send(_ command: SDKCommand) {
        guard command.name == "SET_CARD", let card = card.withLock({ $0.take() }) else { return base.send(command) }
        base.send(SDKCommand(command.name, command.members + [.init("card", card)]))
    }
}

/// `card` of SET_CARD for a card that is lost in ten runs of PACE, after which badged sends PAUSE. Seven commands identify
/// the card and three open it; the twelfth is in PACE.
let slippingCard =
    #"{"faults":[\#(Array(repeating: #"{"afterApdu":11,"do":"remove"}"#, count: 10).joined(separator: ","))]}"#
