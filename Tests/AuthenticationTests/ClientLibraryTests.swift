// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedSDKWrapper
import Dispatch
import EIDServer
import FoundationEssentials
import Secrets
import Synchronization
import TestSupport
import Testing
import Wire

/// Both client libraries against the program badged and an eID-Server, as an app meets them.
@Suite("Online authentication by the client libraries", .timeLimit(.minutes(1)))
struct ClientLibraryTests {
    /// badged with the trust of `eidServer`, and the folder that it is written down in.
    private func badged(trusting eidServer: EIDServer) async throws -> RunningDaemon {
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

    @Test("BadgedClient shows who asks for what, gives the PIN, and has the address to go on at")
    func modern() async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await badged(trusting: eidServer)
        let connection = try await DaemonConnection.connect(to: daemon.path)
        let seen = Mutex<ConsentRequest?>(nil)
        let user = WorkflowClosures { question in
            SecretBox(Secret((question.kind == .pin ? "123456" : "").utf8))
        } consent: { request in
            seen.withLock { $0 = request }
            return ["GivenNames"]
        } insertCard: { _, _ in
            _ = try? await connection.setCard(in: "Simulator")
        }
        let url = try eidServer.tcTokenURL(["required": "FamilyName", "optional": "GivenNames,Address"])
        let result = try await connection.authenticate(tcTokenURL: url, user: user)
        #expect(result.isSuccess, "\(result)")
        #expect(result.url?.contains("ResultMajor=ok") == true)
        let request = try #require(seen.withLock { $0 })
        #expect(request.rights.required == ["FamilyName"])
        #expect(Set(request.rights.optional) == ["GivenNames", "Address"])
        #expect(request.service.subjectURL.hasPrefix("https://localhost"))
        let report = try #require(eidServer.report())
        #expect(report["outcome"] == .string("ok"))
        // What was not granted was not read.
        let data = report["data"]?.members?.map(\.key) ?? []
        #expect(data == ["DocumentValidity", "GivenNames", "FamilyName"])
    }

    @Test("without consent the service gets nothing")
    func declined() async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await badged(trusting: eidServer)
        let connection = try await DaemonConnection.connect(to: daemon.path)
        let user = WorkflowClosures { _ in nil }
        let result = try await connection.authenticate(tcTokenURL: try eidServer.tcTokenURL(), user: user)
        #expect(!result.isSuccess)
        #expect(result.reason == "User_Cancelled")
        #expect(eidServer.report()?["outcome"] != .string("ok"))
    }

    @Test("so does an app of the AusweisApp SDK Wrapper")
    func wrapper() async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await badged(trusting: eidServer)
        let (ended, feed) = AsyncStream.makeStream(of: AuthResult.self)
        let controller = WorkflowController(
            transport: DaemonTransport(path: daemon.path),
            callbackQueue: DispatchQueue(label: "callbacks")
        )
        let app = App(controller, try #require(URL(string: try eidServer.tcTokenURL())), feed)
        controller.registerCallbacks(app)
        controller.start()
        var results: [AuthResult] = []
        for await result in ended { results.append(result) }
        #expect(results.map(\.hasError) == [false])
        #expect(results.first?.url?.query()?.contains("ResultMajor=ok") == true)
        #expect(app.seen.withLock { $0 } == ["started", "rights", "certificate", "card", "PIN"])
        #expect(eidServer.report()?["outcome"] == .string("ok"))
    }

    private typealias AuthResult = BadgedSDKWrapper.AuthResult
}

/// Written from the wrapper's documentation alone.
private final class App: WorkflowCallbacks, Sendable {
    private let controller: WorkflowController
    private let url: URL
    private let feed: AsyncStream<BadgedSDKWrapper.AuthResult>.Continuation
    let seen = Mutex<[String]>([])

    init(
        _ controller: WorkflowController,
        _ url: URL,
        _ feed: AsyncStream<BadgedSDKWrapper.AuthResult>.Continuation
    ) {
        (self.controller, self.url, self.feed) = (controller, url, feed)
    }

    private func note(_ text: String) { seen.withLock { $0.append(text) } }

    func onStarted() { controller.startAuthentication(withTcTokenUrl: url, withStatusMsgEnabled: false) }
    func onAuthenticationStarted() { note("started") }
    func onAccessRights(error: String?, accessRights: BadgedSDKWrapper.AccessRights?) {
        note("rights")
        controller.getCertificate()
    }
    func onCertificate(certificateDescription: BadgedSDKWrapper.CertificateDescription) {
        note("certificate")
        controller.accept()
    }
    func onInsertCard(error: String?) {
        note("card")
        controller.setCard(name: "Simulator")
    }
    func onEnterPin(error: String?, reader: BadgedSDKWrapper.Reader) {
        note("PIN")
        controller.setPin("123456")
    }
    func onAuthenticationCompleted(authResult: BadgedSDKWrapper.AuthResult) {
        feed.yield(authResult)
        feed.finish()
    }
}
