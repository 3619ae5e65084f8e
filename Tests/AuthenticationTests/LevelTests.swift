// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedSDKWrapper
import EIDServer
import FoundationEssentials
import Secrets
import Synchronization
import TestSupport
import Testing
import Text
import Wire

/// badged's socket at an API level, which the wrapper cannot set. Level 1 has no SET_CARD, so the level is raised for it
/// and lowered again.
private final class LevelTransport: SDKConnection {
    private let base: DaemonTransport
    private let level: Int

    init(_ path: String, level: Int) { (base, self.level) = (DaemonTransport(path: path), level) }

    private static func set(_ level: Int, over base: DaemonTransport) {
        base.send(SDKCommand("SET_API_LEVEL", [.init("level", .number(String(level)))]))
    }

    func start(_ receive: @escaping @Sendable (SDKEvent) -> Void) {
        base.start { [base, level] event in
            if case .connected = event { Self.set(level, over: base) }
            receive(event)
        }
    }

    func stop() { base.stop() }

    func send(_ command: SDKCommand) {
        let needsMore = command.name == "SET_CARD" && level < 2
        if needsMore { Self.set(2, over: base) }
        base.send(command)
        if needsMore { Self.set(level, over: base) }
    }
}

/// Workflows of both client libraries at each API level, against the program badged and an eID-Server.
@Suite("Client libraries at each API level", .timeLimit(.minutes(5)))
struct LevelTests {
    /// Answers all questions, and collects the percentages of STATUS.
    private struct CardHolder: EIDUser {
        let badged: DaemonConnection
        let level: Int
        let progress = Progress()

        final class Progress: Sendable {
            let percentages = Mutex<[Int]>([])
        }

        func answer(_ question: SecretQuestion) async -> SecretBox? {
            let digits = question.kind == .newPIN ? "654321" : "123456"
            return SecretBox(Secret(digits.utf8))
        }

        func agree(to request: ConsentRequest) async -> [String]? { ["GivenNames"] }

        func insertCard(error: String?, reader: String?) async {
            if level < 2 { try? await badged.setAPILevel(2) }
            _ = try? await badged.setCard(in: "Simulator")
            if level < 2 { try? await badged.setAPILevel(level) }
        }

        func progress(_ percent: Int) async { progress.percentages.withLock { $0.append(percent) } }
    }

    @Test("BadgedClient changes a PIN and authenticates", arguments: [1, 2, 3])
    func client(level: Int) async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let badged = try await DaemonConnection.connect(to: daemon.path)
        try await badged.setAPILevel(level)
        #expect(try await badged.readers().map(\.name) == ["Simulator"])
        if level == 1 {
            await #expect(throws: ClientError.unknownCommand("GET_STATUS")) { try await badged.status() }
        } else {
            #expect(try await badged.status() == WorkflowStatus())
        }
        let url = try eidServer.tcTokenURL(["required": "FamilyName", "optional": "GivenNames,Address"])
        let authenticating = CardHolder(badged: badged, level: level)
        let result = try await badged.authenticate(tcTokenURL: url, user: authenticating)
        #expect(result.isSuccess, "\(result)")
        #expect(eidServer.report()?["outcome"] == .string("ok"))
        let percentages = authenticating.progress.percentages.withLock { $0 }
        #expect(percentages.suffix(4) == (level == 1 ? [] : [20, 40, 60, 80]))
        let changing = CardHolder(badged: badged, level: level)
        #expect(try await badged.changePIN(user: changing).success)
        // Both runs of PACE have the same percentage.
        #expect(changing.progress.percentages.withLock { $0 } == (level == 1 ? [] : [0]))
        #expect(try await badged.apiLevels().current == level)
    }

    @Test("an application of the AusweisApp SDK Wrapper changes a PIN and authenticates", arguments: [1, 2, 3])
    func wrapper(level: Int) async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let url = try #require(URL(string: try eidServer.tcTokenURL()))
        let app = WrapperApp(LevelTransport(daemon.path, level: level)) { controller, callback in
            switch callback {
            case "started": controller.getReaderList()
            case #"readers ["Simulator"]"#: controller.startAuthentication(withTcTokenUrl: url)
            case "rights": controller.getCertificate()
            case "certificate": controller.accept()
            case "card": controller.setCard(name: "Simulator")
            case "PIN": controller.setPin("123456")
            case "new PIN": controller.setNewPin("654321")
            case "authenticated true true": controller.startChangePin()
            default: break
            }
        }
        #expect(await app.until("changed") == "changed true")
        let expected = [
            "authentication", "rights", "certificate", "card", "PIN", "authenticated true true", "change", "card",
            "PIN", "new PIN", "changed true",
        ]
        // READER, STATUS and API_LEVEL come in between.
        let course = app.all.drop { $0 != "authentication" }.filter(expected.contains)
        #expect(course == expected)
        #expect(app.all.contains("status") == (level > 1))
        #expect(app.all.first { $0.hasPrefix("API_LEVEL") } == "API_LEVEL \(level)")
        #expect(eidServer.report()?["outcome"] == .string("ok"))
        app.controller.stop()
        #expect(await app.until("disconnected") == "disconnected true")
    }
}
